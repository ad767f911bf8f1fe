// When each task ran: one band for each job vertex, or for each slot, drawn on a canvas (ten thousand bars are no
// problem).

const BAND_GAP = 10;
const LABEL_WIDTH = 230;
const NARROW_TIMELINE = 560; // from there on a label has a line of its own: beside its band it would take half of it
const LABEL_HEIGHT = 16;
const TICK_WIDTH = 64;
const AXIS = 26;
const LIGHT = ["CREATED", "SCHEDULED", "DEPLOYING", "INITIALIZING", "CANCELING"]; // pale fills, dark words

class TimelinePane {
  constructor({ about, look, onSelect }) {
    Object.assign(this, { about, look, onSelect });
    this.by = "vertex";
    this.canvas = h("canvas.fm-timeline-canvas", { tabindex: 0, role: "img" });
    this.tip = h("div.fm-tip", { hidden: true });
    this.empty = h("div.fm-empty", {}, "Nothing has run yet. The timeline fills as tasks start.");
    this.switcher = h("div.fm-switch", { role: "group", "aria-label": "Bands" });
    for (const [key, title] of [["vertex", "By job vertex"], ["slot", "By slot"]]) {
      this.switcher.append(h("button", { type: "button", "data-key": key, onclick: () => this.group(key) }, title));
    }
    this.scroller = h("div.fm-timeline-scroll", {}, this.canvas, this.tip);
    this.root = h("div.fm-timeline", {}, this.switcher, this.empty, this.scroller);
    this.bars = [];
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", () => (this.tip.hidden = true));
    this.canvas.addEventListener("click", (event) => {
      const bar = this.barAt(event);
      if (bar) this.onSelect(bar.vertexId, bar.subtask, {});
    });
  }

  group(key) {
    this.by = key;
    this.draw();
  }

  update(frame, tasks) {
    Object.assign(this, { frame, tasks });
    if (this.root.isConnected && this.root.clientWidth) this.draw();
  }

  /** Bands of bars that do not overlap: [{title, lanes: [[row, ...], ...]}]. */
  bands() {
    const t = this.tasks;
    const groups = new Map();
    const order = [];
    for (let row = 0; row < t.n; row++) if (!Number.isNaN(t.start[row])) order.push(row);
    order.sort((a, b) => t.start[a] - t.start[b]);
    if (this.by === "vertex") for (const id of this.about.order) groups.set(id, []);
    for (const row of order) {
      const key = this.by === "vertex" ? t.vertices[t.vertex[row]] : t.text("slot", row) || t.text("executor", row) || "unknown";
      if (!groups.has(key)) groups.set(key, []);
      groups.get(key).push(row);
    }
    const keys = [...groups.keys()].filter((key) => groups.get(key).length);
    if (this.by === "slot") keys.sort(new Intl.Collator("en", { numeric: true }).compare);
    return keys.map((key) => ({
      key,
      title: this.by === "vertex" ? this.about.vertices[key]?.title ?? key : key,
      lanes: this.lanes(groups.get(key)),
    }));
  }

  lanes(rows) {
    const t = this.tasks;
    const lanes = [];
    const free = [];
    for (const row of rows) {
      let lane = free.findIndex((until) => until <= t.start[row] + 1e-6);
      if (lane < 0) lane = lanes.push([]) - 1;
      lanes[lane].push(row);
      free[lane] = Number.isNaN(t.end[row]) ? Infinity : t.end[row];
    }
    return lanes;
  }

  draw() {
    for (const button of this.switcher.children) button.setAttribute("aria-pressed", String(button.dataset.key === this.by));
    const bands = this.tasks?.n ? this.bands() : [];
    this.empty.hidden = bands.length > 0;
    this.scroller.hidden = !bands.length;
    if (!bands.length) return;
    const t = this.tasks;
    const from = Math.min(...bands.map((band) => t.start[band.lanes[0][0]]));
    let to = from;
    for (let row = 0; row < t.n; row++) to = Math.max(to, Number.isNaN(t.end[row]) ? t.start[row] || from : t.end[row]);
    if (this.frame.live) to = Math.max(to, from + (this.frame.since_start ?? 0));
    to = Math.max(to, from + 1);
    this.layout(bands);
    this.paint(bands, from, to);
    this.canvas.setAttribute("aria-label", `Timeline of ${plural(t.n, "task attempt")} over ${showDuration(to - from)}`);
  }

  layout(bands) {
    const width = this.scroller.clientWidth;
    this.labelWidth = width < NARROW_TIMELINE ? 0 : LABEL_WIDTH;
    const above = this.labelWidth ? 0 : LABEL_HEIGHT;
    let y = AXIS;
    for (const band of bands) {
      band.lane = band.lanes.length > 60 ? 2 : band.lanes.length > 24 ? 4 : band.lanes.length > 8 ? 8 : 15;
      band.y = y + above;
      band.height = Math.max(band.lanes.length * band.lane, 18);
      y = band.y + band.height + BAND_GAP;
    }
    const ratio = window.devicePixelRatio || 1;
    this.size = [width, y + 4];
    this.canvas.width = width * ratio;
    this.canvas.height = this.size[1] * ratio;
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${this.size[1]}px`;
    this.canvas.getContext("2d").setTransform(ratio, 0, 0, ratio, 0, 0);
  }

  paint(bands, from, to) {
    const ink = this.canvas.getContext("2d");
    const style = getComputedStyle(this.root.closest(".flinkmagic-view"));
    const color = (name) => style.getPropertyValue(`--fm-${name}`).trim();
    const [width, height] = this.size;
    const left = this.labelWidth || 4;
    const room = width - left - 16;
    const x = (ms) => left + ((ms - from) / (to - from)) * room;
    ink.clearRect(0, 0, width, height);
    ink.font = `11px ${style.fontFamily}`;
    ink.textBaseline = "middle";
    for (const tick of ticks(to - from, Math.min(Math.floor(room / TICK_WIDTH), 7))) {
      ink.fillStyle = color("line");
      ink.fillRect(x(from + tick), AXIS - 6, 1, height - AXIS);
      ink.fillStyle = color("muted");
      ink.textAlign = "center";
      ink.fillText(showDuration(tick), Math.min(Math.max(x(from + tick), 18), width - 24), 10);
    }
    ink.textAlign = "left";
    this.bars = [];
    const names = this.look.names;
    for (const band of bands) {
      ink.fillStyle = color("ink");
      const middle = this.labelWidth ? Math.min(band.height, 18) / 2 : -LABEL_HEIGHT / 2;
      ink.fillText(cut(ink, band.title, (this.labelWidth || width) - 16), 4, band.y + middle);
      band.lanes.forEach((rows, lane) => {
        for (const row of rows) {
          const end = Number.isNaN(this.tasks.end[row]) ? (this.frame.live ? to : this.tasks.start[row]) : this.tasks.end[row];
          const bar = { x: x(this.tasks.start[row]), y: band.y + lane * band.lane, height: Math.max(band.lane - 1, 1), row };
          bar.width = Math.max(x(end) - bar.x - 0.5, 1.5);
          this.bar(ink, bar, names[this.tasks.state[row]], color);
        }
      });
    }
  }

  bar(ink, bar, state, color) {
    const { row } = bar;
    bar.vertexId = this.tasks.vertices[this.tasks.vertex[row]];
    bar.subtask = this.tasks.subtask[row];
    this.bars.push(bar);
    ink.fillStyle = color(state.toLowerCase());
    ink.fillRect(bar.x, bar.y, bar.width, bar.height);
    if (state === "FAILED" || state === "CANCELED") {
      ink.strokeStyle = color("card");
      ink.lineWidth = 1.5;
      ink.beginPath();
      ink.moveTo(bar.x, bar.y + bar.height);
      ink.lineTo(bar.x + bar.width, bar.y);
      if (state === "FAILED") {
        ink.moveTo(bar.x, bar.y);
        ink.lineTo(bar.x + bar.width, bar.y + bar.height);
      }
      ink.stroke();
    }
    if (bar.height < 12 || bar.width < 22) return;
    const vertex = this.about.order.indexOf(bar.vertexId) + 1;
    const label = this.by === "slot" ? `${vertex}:${bar.subtask + 1}` : String(bar.subtask + 1);
    ink.fillStyle = color(LIGHT.includes(state) ? "on-light" : "on-state");
    if (ink.measureText(label).width < bar.width - 4) ink.fillText(label, bar.x + 3, bar.y + bar.height / 2 + 0.5);
  }

  barAt(event) {
    const frame = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - frame.left, event.clientY - frame.top];
    return this.bars.find((bar) => x >= bar.x && x <= bar.x + bar.width && y >= bar.y && y <= bar.y + bar.height);
  }

  point(event) {
    const bar = this.barAt(event);
    this.tip.hidden = !bar;
    this.canvas.style.cursor = bar ? "pointer" : "";
    if (!bar) return;
    const t = this.tasks;
    const vertex = this.about.vertices[bar.vertexId];
    const words = this.look.states[this.look.names[t.state[bar.row]]].word;
    replaceChildren(
      this.tip,
      h("strong", {}, `${vertex?.title ?? bar.vertexId} (${bar.subtask + 1}/${vertex?.parallelism ?? "?"})`),
      h("div", {}, `${words}, attempt ${t.attempt[bar.row] + 1}, ${showDuration(t.duration(bar.row))}`),
      h("div", {}, `${t.text("slot", bar.row) || t.text("executor", bar.row)} · ${showNumber(first(t.rowsIn[bar.row], t.rowsOut[bar.row]))} rows`),
    );
    const frame = this.scroller.getBoundingClientRect();
    this.tip.style.left = `${Math.max(Math.min(event.clientX - frame.left + 14, frame.width - 260), 0)}px`;
    this.tip.style.top = `${event.clientY - frame.top + this.scroller.scrollTop + 14}px`;
  }
}

function cut(ink, text, width) {
  if (ink.measureText(text).width <= width) return text;
  let end = text.length;
  while (end > 1 && ink.measureText(`${text.slice(0, end)}…`).width > width) end -= 1;
  return `${text.slice(0, end)}…`;
}

/** Round steps from 0 to `span` ms, about seven of them. */
function ticks(span, most) {
  const rough = span / Math.max(most, 1);
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= rough) ?? power * 10;
  return Array.from({ length: Math.floor(span / step) + 1 }, (_, i) => i * step);
}
