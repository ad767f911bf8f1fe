// Which task is in which slot now.

const LIVE_STATES = ["DEPLOYING", "INITIALIZING", "RUNNING", "CANCELING"];
const MOST_SLOTS = 256;

class SlotsPane {
  constructor({ about, look, onSelect }) {
    Object.assign(this, { about, look, onSelect });
    this.root = h("div.fm-slots", { "aria-label": "Slots" });
  }

  update(frame, tasks) {
    const total = frame.slots_total;
    const seen = new Map();
    for (let row = 0; row < tasks.n; row++) {
      const slot = tasks.text("slot", row);
      if (!slot) continue;
      const live = LIVE_STATES.includes(this.look.names[tasks.state[row]]);
      if (live || !seen.has(slot)) seen.set(slot, live ? row : null);
    }
    const names = [...seen.keys()].sort(new Intl.Collator("en", { numeric: true }).compare);
    const cells = names.slice(0, MOST_SLOTS).map((name) => this.cell(name, seen.get(name), tasks));
    for (let i = cells.length; i < Math.min(total ?? 0, MOST_SLOTS); i++) cells.push(this.cell(`slot ${i + 1}`, null, tasks));
    const heading = known(total) ? `Slots: ${frame.slots_used ?? 0} of ${total} in use` : cells.length ? "Slots" : "";
    replaceChildren(this.root, heading ? h("h4", {}, heading) : null, h("div.fm-slot-grid", {}, ...cells));
    this.root.hidden = !heading;
  }

  cell(name, row, tasks) {
    if (row === null || row === undefined) return h("div.fm-slot", { title: `${name}: free` }, h("small", {}, name), h("span.fm-free", {}, "free"));
    const state = this.look.names[tasks.state[row]];
    const vertexId = tasks.vertices[tasks.vertex[row]];
    const vertex = this.about.vertices[vertexId];
    const text = `${tasks.subtask[row] + 1}/${vertex?.parallelism ?? "?"} · ${vertex?.title ?? vertexId}`;
    const pick = () => this.onSelect(vertexId, tasks.subtask[row], {});
    return h("button.fm-slot.fm-slot-busy", { type: "button", "data-state": state, title: `${name}: ${text}, ${this.look.states[state].word}`, onclick: pick },
      h("small", {}, name), h("span", {}, stateIcon(this.look, state), text));
  }
}
