// Task attempts as columns, decoded from one buffer (see flinkmagic/display/widget_data.py: the order of columns is shared).

const FLOAT_COLUMNS = ["start", "end", "rowsIn", "rowsOut", "bytesIn", "bytesOut"];
const INT_COLUMNS = ["vertex", "subtask", "attempt", "slot", "executor", "error"];

class TaskTable {
  constructor(message) {
    this.n = message?.n ?? 0;
    this.strings = message?.strings ?? [];
    this.vertices = message?.vertices ?? [];
    if (!this.n) return;
    const view = message.columns;
    const buffer = view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength);
    let at = 0;
    for (const name of FLOAT_COLUMNS) {
      this[name] = new Float64Array(buffer, at, this.n);
      at += 8 * this.n;
    }
    for (const name of INT_COLUMNS) {
      this[name] = new Int32Array(buffer, at, this.n);
      at += 4 * this.n;
    }
    this.state = new Uint8Array(buffer, at, this.n);
  }

  text(column, row) {
    const index = this[column][row];
    return index < 0 ? "" : this.strings[index];
  }

  duration(row) {
    return this.end[row] - this.start[row];
  }

  /** Rows of a vertex' newest attempts, by subtask. */
  latest(vertexId) {
    const rows = new Map();
    for (const [subtask, attempts] of this.attempts(vertexId)) rows.set(subtask, attempts[attempts.length - 1]);
    return rows;
  }

  /** Rows of all of a vertex' attempts, by subtask, oldest first. */
  attempts(vertexId) {
    const vertex = this.vertices.indexOf(vertexId);
    const rows = new Map();
    for (let row = 0; row < this.n; row++) {
      if (this.vertex[row] !== vertex) continue;
      const others = rows.get(this.subtask[row]);
      if (others === undefined) rows.set(this.subtask[row], [row]);
      else others.push(row);
    }
    for (const others of rows.values()) if (others.length > 1) others.sort((a, b) => this.attempt[a] - this.attempt[b]);
    return rows;
  }

  /** [first start, last end] of a vertex, [NaN, NaN] if nothing has begun. */
  span(vertexId) {
    const vertex = this.vertices.indexOf(vertexId);
    let from = NaN;
    let to = NaN;
    for (let row = 0; row < this.n; row++) {
      if (this.vertex[row] !== vertex || Number.isNaN(this.start[row])) continue;
      from = Number.isNaN(from) ? this.start[row] : Math.min(from, this.start[row]);
      const end = Number.isNaN(this.end[row]) ? this.start[row] : this.end[row];
      to = Number.isNaN(to) ? end : Math.max(to, end);
    }
    return [from, to];
  }
}
