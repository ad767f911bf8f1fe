// What is known about one vertex: the user's own lines, its subtasks, how evenly they worked, what failed.

const METRICS = {
  state: { title: "State" },
  duration: { title: "Duration", show: showDuration, of: (tasks, row) => tasks.duration(row) },
  rows: { title: "Rows", show: showNumber, of: (tasks, row) => first(tasks.rowsIn[row], tasks.rowsOut[row]) },
  bytes: { title: "Bytes", show: showSize, of: (tasks, row) => first(tasks.bytesIn[row], tasks.bytesOut[row]) },
};
const SHOWN_ROWS = 50;

function first(...values) {
  return values.find((value) => known(value) && value > 0) ?? values.find(known) ?? NaN;
}

class DetailsPane {
  constructor({ about, look, onClose, onPick }) {
    Object.assign(this, { about, look, onPick });
    this.metric = "state";
    this.subtask = null;
    this.body = h("div.fm-details-body");
    this.heading = h("div.fm-details-title");
    const close = h("button.fm-quiet", { type: "button", title: "Close (Esc)", "aria-label": "Close details", onclick: onClose }, "✕");
    this.root = h("aside.fm-details", { "aria-label": "Details of the selected vertex" }, h("div.fm-details-head", {}, this.heading, close), this.body);
  }

  /** seen: the frame, the tasks, and what was found and measured at the vertex. */
  show(vertexId, seen, subtask) {
    if (vertexId !== this.vertexId) this.metric = "state";
    if (subtask !== undefined) this.subtask = subtask;
    else if (vertexId !== this.vertexId) this.subtask = null;
    Object.assign(this, { vertexId, seen, ...seen });
    const { frame } = seen;
    const vertex = this.about.vertices[vertexId];
    const group = this.about.groups[vertexId];
    this.heading.textContent = vertex?.title ?? group?.title ?? "";
    if (group) return replaceChildren(this.body, ...this.members(group));
    if (!vertex) return replaceChildren(this.body);
    const states = frame.vertices?.[vertexId];
    const scrolled = this.body.scrollTop;
    replaceChildren(
      this.body,
      this.summary(vertex, states),
      ...this.errors(vertexId),
      this.timeParts(),
      ...this.found.map((one) => findingBox(one)),
      this.operators(vertex),
      this.adapted(vertexId),
      this.spread(vertexId),
      this.subtasks(vertex, states),
      this.facts(vertex),
    );
    this.body.scrollTop = scrolled;
  }

  summary(vertex, states) {
    const line = h("div.fm-line-of-facts", {}, h("span.fm-tag", {}, vertex.role_word), h("span.fm-tag", {}, plural(vertex.parallelism, "subtask")));
    for (const badge of vertex.badges) line.append(h("span.fm-tag.fm-tag-strong", {}, badge));
    if (states?.cost?.length) line.append(h("span.fm-cost", {}, states.cost[0]));
    if (states) line.prepend(h("span.fm-tag.fm-state", { "data-state": states.lead }, stateIcon(this.look, states.lead), this.look.states[states.lead].word));
    return line;
  }

  operators(vertex) {
    const list = h("ol.fm-code");
    for (const line of vertex.operators) {
      const item = h("li", {}, codeLine(line));
      const note = [line.where, line.call ? line.operator : "", line.variable && !line.code ? `→ ${line.variable}` : ""].filter(Boolean).join(" · ");
      if (note) item.append(h("small", {}, note));
      const measures = line.ids.flatMap((id) => this.measured?.operators[id] ?? []);
      if (measures.length) item.append(measuresLine(measures));
      if (line.text) item.append(h("details", {}, h("summary", {}, "Spark's words"), h("pre", {}, line.text)));
      list.append(item);
    }
    return h("section", {}, h("h4", {}, "Your lines and Spark's operators"), list);
  }

  /** Where the time of the vertex's tasks went, as one bar, and where Spark's UI shows its stage. */
  timeParts() {
    const { parts = [], stages = [] } = this.measured ?? {};
    const total = parts.reduce((sum, [, ms]) => sum + ms, 0);
    if (!total) return null;
    const bar = h("div.fm-parts", { role: "img", "aria-label": parts.map(([name, ms]) => `${name} ${showDuration(ms)}`).join(", ") });
    const legend = h("div.fm-parts-legend");
    for (const [name, ms] of parts) {
      const color = `background: ${this.look.parts[name]}`;
      const share = `${Math.round((100 * ms) / total)} %`;
      bar.append(h("i", { style: `${color}; flex-grow: ${ms / total}`, title: `${name}: ${showDuration(ms)}, ${share}` }));
      legend.append(h("span", { "data-part": name }, h("i", { style: color }), `${name} `, h("b", {}, showDuration(ms))));
    }
    const links = stages.map(([words, url]) => h("a", { href: url, target: "_blank", rel: "noopener noreferrer" }, words));
    const link = links.length ? h("p.fm-links", {}, "In Spark's UI: ", ...links.flatMap((one, i) => (i ? [", ", one] : [one]))) : null;
    return h("section.fm-time", {}, h("h4", {}, `Where ${showDuration(total)} of its tasks went`), bar, legend, link);
  }

  /** What the run has found out: how large the shuffle is, what ran differently from the plan, what the stage measured. */
  adapted(vertexId) {
    const facts = [...(this.frame.facts?.[vertexId] ?? []), ...(this.measured?.facts ?? []), ...(this.measured?.above ?? [])];
    if (!facts.length) return null;
    const rows = facts.map(([name, value]) => h("tr", {}, h("th", {}, name), h("td", {}, value)));
    return h("section.fm-found", {}, h("h4", {}, "Found while it ran"), h("table.fm-facts", {}, ...rows));
  }

  /** Skew: the largest against the median, of duration and of bytes. */
  spread(vertexId) {
    const rows = [...this.tasks.latest(vertexId).values()];
    const cells = [];
    for (const key of ["duration", "bytes", "rows"]) {
      const { of, show, title } = METRICS[key];
      const values = rows.map((row) => of(this.tasks, row)).filter(known).sort((a, b) => a - b);
      if (!values.length || values[values.length - 1] <= 0) continue;
      const [middle, most] = [median(values), values[values.length - 1]];
      const skew = middle > 0 ? most / middle : NaN;
      cells.push(
        h("tr", {}, h("th", {}, title), h("td", {}, show(middle)), h("td", {}, show(most)),
          h("td", { class: skew >= 3 ? "fm-skewed" : "" }, known(skew) ? `${skew.toFixed(1)}×${skew >= 3 ? " ⚠" : ""}` : "–")),
      );
    }
    if (!cells.length) return null;
    const head = h("tr", {}, h("th"), h("th", {}, "median"), h("th", {}, "max"), h("th", {}, "skew"));
    return h("section", {}, h("h4", {}, "Skew"), h("table.fm-numbers", {}, head, ...cells));
  }

  subtasks(vertex, states) {
    const rows = this.tasks.latest(this.vertexId);
    const switcher = h("div.fm-switch", { role: "group", "aria-label": "Colour subtasks by" });
    for (const [key, { title }] of Object.entries(METRICS)) {
      const pick = () => {
        this.metric = key;
        this.show(this.vertexId, this.seen);
      };
      switcher.append(h("button", { type: "button", "aria-pressed": String(this.metric === key), onclick: pick }, title));
    }
    const codes = states ? decodeStates(states.states) : new Uint8Array(vertex.parallelism);
    return h("section", {}, h("h4", {}, "Subtasks"), switcher, this.heat(codes, rows), this.table(codes, rows));
  }

  /** A grid of all subtasks: their states' own shapes, or a shade from light to dark. */
  heat(codes, rows) {
    const count = codes.length;
    const pitch = count <= 256 ? 16 : count <= 2500 ? 8 : 4;
    const across = Math.max(1, Math.min(count, Math.floor(304 / pitch)));
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [across * pitch, Math.ceil(count / across) * pitch];
    const canvas = h("canvas.fm-heat", { width: width * ratio, height: height * ratio, tabindex: 0, role: "img", "aria-label": `${plural(count, "subtask")} by ${this.metric}` });
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    const ink = canvas.getContext("2d");
    ink.scale(ratio, ratio);
    const metric = METRICS[this.metric];
    const values = metric.of && [...codes.keys()].map((i) => (rows.has(i) ? metric.of(this.tasks, rows.get(i)) : NaN));
    const most = values ? Math.max(...values.filter(known), 0) : 0;
    const style = getComputedStyle(this.root.closest(".flinkmagic-view") ?? document.body);
    const side = pitch - Math.max(1, pitch * 0.16);
    codes.forEach((code, i) => {
      const [x, y] = [(i % across) * pitch, Math.floor(i / across) * pitch];
      ink.beginPath();
      if (values) {
        ink.fillStyle = known(values[i]) ? shade(most ? values[i] / most : 0) : style.getPropertyValue("--fm-line");
        ink.rect(x, y, side, known(values[i]) ? side : side / 3);
      } else {
        ink.fillStyle = style.getPropertyValue(`--fm-${this.look.names[code].toLowerCase()}`);
        this.look.cells[code].forEach(([u, v], at) => ink[at ? "lineTo" : "moveTo"](x + u * side, y + v * side));
      }
      ink.fill();
      if (i === this.subtask) {
        ink.strokeStyle = style.getPropertyValue("--fm-ink");
        ink.lineWidth = 2;
        ink.strokeRect(x - 0.5, y - 0.5, side + 1, side + 1);
      }
    });
    const at = (event) => {
      const frame = canvas.getBoundingClientRect();
      const i = Math.floor((event.clientY - frame.top) / pitch) * across + Math.floor((event.clientX - frame.left) / pitch);
      return i >= 0 && i < count ? i : null;
    };
    canvas.addEventListener("pointermove", (event) => {
      const i = at(event);
      canvas.title = i === null ? "" : `subtask ${i + 1} of ${count}: ${this.look.states[this.look.names[codes[i]]].word}${values && known(values[i]) ? `, ${metric.show(values[i])}` : ""}`;
    });
    canvas.addEventListener("click", (event) => this.pick(at(event)));
    const scale = values && most > 0 ? h("div.fm-scale", {}, "0", h("i", { class: "fm-ramp" }), metric.show(most)) : null;
    return h("div.fm-heat-box", {}, canvas, scale);
  }

  pick(subtask) {
    this.subtask = this.subtask === subtask ? null : subtask;
    this.onPick(this.vertexId, this.subtask);
    this.show(this.vertexId, this.seen, this.subtask);
  }

  /** One line per subtask, its earlier attempts below; if there are many, the failed, repeated and slowest ones. */
  table(codes, rows) {
    const attempts = this.tasks.attempts(this.vertexId);
    const failed = this.look.names.indexOf("FAILED");
    let order = [...codes.keys()];
    if (this.subtask !== null) order = [this.subtask];
    else if (order.length > SHOWN_ROWS) {
      const weight = (i) => {
        if (codes[i] === failed) return Infinity;
        const repeats = (attempts.get(i)?.length ?? 1) - 1;
        return rows.has(i) ? repeats * 1e12 + (this.tasks.duration(rows.get(i)) || 0) : -1;
      };
      order = order.sort((a, b) => weight(b) - weight(a)).slice(0, SHOWN_ROWS);
    }
    const head = h("tr", {}, ...["#", "", "try", "time", "rows in → out", "bytes in → out", "where"].map((name) => h("th", {}, name)));
    const lines = order.flatMap((i) => this.rows(i, this.look.names[codes[i]], attempts.get(i) ?? []));
    const rest = codes.length - order.length;
    const note = rest && this.subtask === null ? h("small", {}, `… and ${showNumber(rest)} more; failed, repeated and slowest first. Choose one in the grid.`) : null;
    return h("div.fm-table-box", {}, h("table.fm-numbers.fm-tasks", {}, head, ...lines), note);
  }

  /** A subtask's newest attempt, with the scheduler's state for it, and its earlier ones, newest first. */
  rows(subtask, state, attempts) {
    const [newest, ...earlier] = [...attempts].reverse();
    const lines = [this.row(subtask, state, newest), this.reason(newest)];
    for (const row of earlier) {
      const line = this.row(subtask, this.look.names[this.tasks.state[row]], row);
      line.classList.add("fm-earlier");
      line.firstChild.textContent = "↳";
      line.firstChild.title = `an earlier attempt of subtask ${subtask + 1}`;
      lines.push(line, this.reason(row));
    }
    return lines.filter(Boolean);
  }

  /** Why an attempt failed. */
  reason(row) {
    const error = row === undefined ? "" : this.tasks.text("error", row);
    if (!error) return null;
    return h("tr.fm-reason", {}, h("td"), h("td", { colspan: 6 }, h("div", {}, `try ${this.tasks.attempt[row] + 1}: ${error}`)));
  }

  row(subtask, state, row) {
    const t = this.tasks;
    const has = row !== undefined;
    const cells = has
      ? [t.attempt[row] + 1, showDuration(t.duration(row)), showFlow(showNumber, t.rowsIn[row], t.rowsOut[row]), showFlow(showSize, t.bytesIn[row], t.bytesOut[row]), t.text("slot", row) || t.text("executor", row) || "–"]
      : ["–", "–", "–", "–", "–"];
    const sign = h("td.fm-state", { "data-state": state, title: this.look.states[state].word }, stateIcon(this.look, state), h("span.fm-hidden", {}, this.look.states[state].word));
    return h("tr", {}, h("td", {}, subtask + 1), sign, ...cells.map((text) => h("td", {}, String(text))));
  }

  errors(vertexId) {
    return (this.frame.errors ?? []).filter((error) => error.vertex === vertexId).map(errorBox);
  }

  facts(vertex) {
    const rows = vertex.facts.map(([name, value]) => h("tr", {}, h("th", {}, name), h("td", {}, value)));
    rows.unshift(h("tr", {}, h("th", {}, "name"), h("td", {}, vertex.name)));
    return h("section", {}, h("details", {}, h("summary", {}, "In Flink's words"), h("table.fm-facts", {}, ...rows)));
  }

  members(group) {
    const items = group.members.map((id) => {
      const vertex = this.about.vertices[id];
      const state = this.frame.vertices?.[id]?.lead ?? "CREATED";
      return h("li", {}, h("button.fm-member", { type: "button", onclick: () => this.onPick(id, null, true) }, stateIcon(this.look, state), vertex?.title ?? id));
    });
    return [h("p", {}, plural(group.members.length, "job vertex").replace(/vertexs$/, "vertices"), " drawn as one. Choose one to see it in the whole graph."), h("ul.fm-members", {}, ...items)];
  }
}

/** What an operator has measured, in Spark's words. */
function measuresLine(facts) {
  return h("div.fm-measures", {}, ...facts.map(([name, value]) => h("span", {}, `${name} `, h("b", {}, value))));
}

/** The user's line with the user's call in bold; the call alone, or the operator, if there is no line. */
function codeLine({ call, code, operator }) {
  const text = code.trim();
  const at = call ? text.indexOf(call) : -1;
  if (at < 0) {
    const alone = h("code", {}, call || operator);
    return text && call ? h("div", {}, alone, h("pre", {}, text)) : alone;
  }
  return h("code", {}, text.slice(0, at), h("b", {}, call), text.slice(at + call.length));
}

function errorBox(error) {
  const where = error.where ? h("strong", {}, error.where) : null;
  const box = h("div.fm-error", { role: "alert" }, where, h("div", {}, error.message));
  if (error.traceback) box.append(h("pre", {}, error.traceback));
  return box;
}

/** A streaming query: what it does, and each fact with its course over the last batches. */
function queryBox({ name, doing, facts }) {
  const items = facts.map(([word, value, bars]) => {
    const course = bars ? h("span.fm-bars", { role: "img", "aria-label": `${word} of the last batches` }, bars) : null;
    return h("div", {}, h("dt", {}, word), h("dd", {}, value, course));
  });
  return h("section.fm-query", {}, h("p", {}, h("strong", {}, name), ` ${doing}`), h("dl", {}, ...items));
}

/** From light to dark blue, for shares from 0 to 1: readable by lightness alone. */
function shade(share) {
  const at = Math.min(Math.max(share, 0), 1);
  const mix = (a, b) => Math.round(a + (b - a) * at);
  return `rgb(${mix(214, 8)}, ${mix(230, 64)}, ${mix(244, 129)})`;
}
