// The card of a cell: a line for each of its actions and writes. A line that is opened holds the place of a job view,
// which is a widget of its own.

class CardView {
  constructor(model) {
    this.model = model;
    this.lines = new Map(); // by id: the elements of a line
    this.root = h("div.flinkmagic-view.fm-actions", { role: "region", "aria-label": "Actions of this cell" });
    this.draw = () => {
      const rows = this.model.get("_rows");
      rows.forEach((row) => this.drawLine(row));
      for (const id of [...this.lines.keys()].slice(rows.length)) this.dropLine(id);
    };
    this.draw();
  }

  start() {
    this.model.on("change:_rows", this.draw);
    this.draw();
  }

  stop() {
    this.model.off("change:_rows", this.draw);
  }

  drawLine(row) {
    const line = this.lines.get(row.id) ?? this.makeLine(row.id);
    line.row = row;
    line.state.textContent = row.glyph;
    line.state.dataset.state = row.state;
    line.state.title = row.state.toLowerCase();
    line.call.textContent = row.call;
    line.facts.textContent = row.facts;
    [line.call.title, line.facts.title] = [row.call, row.facts];
    const running = row.done !== null;
    line.box.hidden = line.cancel.hidden = !running;
    if (running) {
      line.fill.style.width = `${100 * row.done}%`;
      line.box.setAttribute("aria-valuenow", Math.round(100 * row.done));
    } else {
      line.cancel.disabled = false;
    }
    line.open.disabled = !row.can_open;
    if (row.place && !line.body.firstChild) {
      line.body.append(h(`div.${row.place}`));
      this.show(line, true);
    }
    if (!row.place && line.body.firstChild) {
      line.body.replaceChildren();
      this.show(line, false);
    }
  }

  dropLine(id) {
    this.lines.get(id).whole.remove();
    this.lines.delete(id);
  }

  makeLine(id) {
    const send = (type) => this.model.send({ type, row: id });
    const line = {
      state: h("span.fm-action-state", { role: "status" }),
      call: h("code.fm-action-call"),
      facts: h("span.fm-action-facts"),
      fill: h("i", { style: "background: var(--fm-running)" }),
      body: h("div.fm-action-body", { hidden: true }),
    };
    line.box = h("div.fm-progress-box", { role: "progressbar", "aria-valuemin": 0, "aria-valuemax": 100, "aria-label": "Tasks finished" }, h("div.fm-progress", {}, line.fill));
    line.cancel = h("button.fm-run", { type: "button", "data-action": "cancel", onclick: () => {
      line.cancel.disabled = true;
      send("cancel");
    } }, "Cancel");
    line.open = h("button.fm-action-open", { type: "button", title: "Show its graphs", "aria-label": "Show its graphs", "aria-expanded": "false", onclick: () => {
      if (line.row.place) this.show(line, line.body.hidden);
      else send("open");
    } }, "▸");
    this.lines.set(id, line);
    line.whole = h("div.fm-action", {}, h("div.fm-action-line", {}, line.open, line.state, line.call, line.facts, line.box, line.cancel), line.body);
    this.root.append(line.whole);
    return line;
  }

  show(line, shown) {
    line.body.hidden = !shown;
    line.open.textContent = shown ? "▾" : "▸";
    line.open.setAttribute("aria-expanded", String(shown));
  }
}

const View = CardView;
