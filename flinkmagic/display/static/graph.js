// One graph on a surface that can be dragged and zoomed. Python sends the finished drawing; this code colours, selects,
// searches and moves the view.

const MIN_SCALE = 0.05;
const MAX_SCALE = 3;
const READABLE = 0.65;
const LETTER = 6.6; // about as wide as a letter at the foot of a card is
const FAR = 0.5; // below this scale small words give way to large titles

class GraphPane {
  /** about: the job's fixed facts; look: signs of states; onSelect(id, subtask): a card was chosen. */
  constructor({ about, look, onSelect }) {
    this.about = about;
    this.look = look;
    this.onSelect = onSelect;
    this.viewport = svgElement("g", { class: "fm-viewport" });
    this.surface = svgElement("svg", { class: "fm-surface-svg", tabindex: 0, role: "group" });
    this.surface.append(this.viewport);
    this.root = h("div.fm-graph", {}, this.surface);
    this.cards = new Map(); // id of the card -> element
    this.painted = new Map(); // vertex id -> what was painted last
    this.extent = [0, 0];
    this.at = { x: 0, y: 0, scale: 1 };
    this.emphasized = null;
    this.touched = false; // whether the reader has moved the view
    this.listen();
  }

  show(picture) {
    if (!picture?.tree || picture === this.picture) return;
    this.picture = picture;
    const [, , parts] = picture.tree;
    this.viewport.replaceChildren(...parts.filter((part) => typeof part !== "string").map(drawTree));
    this.extent = [picture.width, picture.height];
    this.cards = new Map();
    this.byVertex = new Map();
    for (const card of this.viewport.querySelectorAll(".fm-node")) {
      this.cards.set(card.dataset.id, card);
      const vertex = card.dataset.vertex;
      if (!this.byVertex.has(vertex)) this.byVertex.set(vertex, []);
      this.byVertex.get(vertex).push(card);
      card.setAttribute("tabindex", -1);
      card.setAttribute("role", "button");
      card.setAttribute("aria-label", card.querySelector("title")?.textContent ?? card.dataset.id);
    }
    this.edges = [...this.viewport.querySelectorAll(".fm-edge, .fm-edge-label")];
    this.painted.clear();
    this.touched = false;
    if (this.frame) this.paint(this.frame);
    this.mark(this.selected);
    this.emphasize(this.emphasized);
    this.fitReadable();
  }

  // Painting -------------------------------------------------------------------------------------------------------

  paint(frame) {
    this.frame = frame;
    if (!this.byVertex) return;
    for (const [vertexId, cards] of this.byVertex) {
      const states = frame.vertices?.[vertexId];
      if (!states) continue;
      const key = `${states.states}|${states.words}|${states.cost?.[0]}`;
      if (this.painted.get(vertexId) === key) continue;
      this.painted.set(vertexId, key);
      for (const card of cards) this.paintCard(card, states);
    }
  }

  paintCard(card, { states, lead, words, bar, cost = [] }) {
    card.dataset.state = lead;
    const foot = card.querySelector(".fm-foot");
    if (foot) {
      foot.dataset.state = lead;
      foot.querySelector(".fm-state-icon").setAttribute("d", this.look.states[lead].icon);
      for (const old of foot.querySelectorAll(".fm-bar")) old.remove();
      const track = foot.querySelector(".fm-track");
      const [left, width] = [Number(track.getAttribute("x")), Number(track.getAttribute("width"))];
      // The costs of the tasks are shown if a card represents a whole vertex, as far as there is room for them.
      const told = card.dataset.id === card.dataset.vertex ? cost : [];
      const fits = told.find((text) => text.length * LETTER <= width - 18) ?? told.at(-1);
      foot.querySelector(".fm-state-text").textContent = fits ?? words;
      let at = 0;
      for (const [state, share] of bar) {
        const piece = svgElement("rect", {
          x: left + at * width, y: track.getAttribute("y"), width: share * width, height: 3, class: "fm-bar",
        });
        piece.dataset.state = state;
        foot.append(piece);
        at += share;
      }
    }
    const subtasks = card.querySelector(".fm-subtasks");
    if (subtasks) this.paintSubtasks(subtasks, decodeStates(states));
  }

  /** Put a sign on what has lost time (nodes.py draws the same in saved pictures). found: findings by vertex. */
  markFound(found) {
    for (const [id, card] of this.cards) {
      const ids = this.about.groups[id]?.members ?? (id === card.dataset.vertex ? [id] : []);
      const lines = ids.flatMap((each) => found.get(each) ?? []).map((one) => one.mark);
      const text = lines.join("\n");
      const old = card.querySelector(".fm-mark");
      if ((old?.querySelector("title").textContent ?? "") === text) continue;
      old?.remove();
      if (lines.length) card.append(this.sign(card, lines.length, text));
    }
  }

  sign(card, count, text) {
    const { icon, width } = this.look.mark;
    const left = Number(card.querySelector(".fm-border").getAttribute("width")) - width - 14;
    const title = svgElement("title");
    title.textContent = text;
    const number = svgElement("text", { x: width - 7, y: 11.3, "font-size": 10.5, "font-weight": 700, "text-anchor": "end", class: "fm-mark-ink" });
    number.textContent = count;
    const sign = svgElement("g", { class: "fm-mark", transform: `translate(${left} -10)` });
    sign.append(title, svgElement("rect", { width, height: 15, rx: 7.5, class: "fm-mark-pill" }),
      svgElement("path", { d: icon, "fill-rule": "evenodd", class: "fm-mark-ink" }), number);
    return sign;
  }

  paintSubtasks(group, codes) {
    for (const chip of group.querySelectorAll(".fm-subtask")) {
      const state = this.look.names[codes[chip.dataset.part]];
      if (chip.dataset.state === state) continue;
      chip.dataset.state = state;
      chip.querySelector(".fm-state-icon").setAttribute("d", this.look.states[state].icon);
    }
    const grid = group.querySelector(".fm-grid");
    if (!grid) return;
    const [across, pitch] = [Number(grid.dataset.across), Number(grid.dataset.pitch)];
    const shapes = this.look.names.map(() => []);
    const side = pitch - Math.max(1, pitch * 0.16);
    codes.forEach((code, index) => {
      const [x, y] = [(index % across) * pitch, Math.floor(index / across) * pitch];
      const points = this.look.cells[code].map(([u, v]) => `${(x + u * side).toFixed(1)} ${(y + v * side).toFixed(1)}`);
      shapes[code].push(`M${points.join("L")}z`);
    });
    grid.replaceChildren(
      ...shapes.flatMap((cells, code) => {
        if (!cells.length) return [];
        const path = svgElement("path", { d: cells.join(""), class: "fm-cells" });
        path.dataset.state = this.look.names[code];
        return [path];
      }),
    );
  }

  // Selecting and searching ----------------------------------------------------------------------------------------

  /** Mark the cards of a vertex as selected, and the arrows to and from them. */
  mark(vertexId) {
    this.selected = vertexId;
    const chosen = new Set();
    for (const [id, card] of this.cards) {
      const is = Boolean(vertexId) && (card.dataset.vertex === vertexId || id === vertexId);
      card.classList.toggle("fm-selected", is);
      if (is) chosen.add(id);
    }
    for (const edge of this.edges ?? []) {
      edge.classList.toggle("fm-near", chosen.has(edge.dataset.source) || chosen.has(edge.dataset.target));
    }
  }

  /** Dim what is not in `ids` (ids of cards or of vertices); null shows everything. */
  emphasize(ids) {
    this.emphasized = ids;
    this.root.classList.toggle("fm-some", ids !== null);
    const bright = new Set();
    for (const [id, card] of this.cards) {
      const is = ids !== null && (ids.has(id) || ids.has(card.dataset.vertex));
      card.classList.toggle("fm-bright", is);
      if (is) bright.add(id);
    }
    for (const edge of this.edges ?? []) {
      edge.classList.toggle("fm-bright", bright.has(edge.dataset.source) && bright.has(edge.dataset.target));
    }
  }

  card(id) {
    return this.cards.get(id) ?? this.byVertex?.get(id)?.[0];
  }

  // Moving the view ------------------------------------------------------------------------------------------------

  get size() {
    return [this.surface.clientWidth || 800, this.surface.clientHeight || 480];
  }

  apply() {
    const { x, y, scale } = this.at;
    this.viewport.setAttribute("transform", `translate(${x.toFixed(2)} ${y.toFixed(2)}) scale(${scale.toFixed(4)})`);
    this.root.classList.toggle("fm-far", scale < FAR);
  }

  /** Show the whole graph, but never above 100 %; from the top if it would be too small to read. */
  fit() {
    if (!this.root.isConnected || !this.extent[0] || !this.surface.clientWidth) return;
    const [width, height] = this.size;
    const scale = Math.min(width / this.extent[0], height / this.extent[1], 1);
    this.at = {
      x: (width - this.extent[0] * scale) / 2,
      y: Math.max((height - this.extent[1] * scale) / 2, 0),
      scale: Math.max(scale, MIN_SCALE),
    };
    this.apply();
  }

  /** As `fit`, but large enough to be read: then from the top, and from the left if it is too wide. */
  fitReadable() {
    this.fit();
    if (this.at.scale >= READABLE || !this.surface.clientWidth) return;
    const [width] = this.size;
    const scale = Math.min(Math.max(width / this.extent[0], READABLE), 1);
    this.at = { x: Math.max((width - this.extent[0] * scale) / 2, 0), y: 0, scale };
    this.apply();
  }

  /** Show it at 100 %, around the middle of what is seen now. */
  lifeSize() {
    this.zoom(1 / this.at.scale);
  }

  /** Show the given cards: as large as they fit, at most at 100 %. */
  fitTo(ids) {
    this.touched = true;
    const boxes = [...ids].map((id) => this.card(id)?.getBBox && this.boxOf(this.card(id))).filter(Boolean);
    if (!boxes.length) return;
    const left = Math.min(...boxes.map((box) => box.x));
    const top = Math.min(...boxes.map((box) => box.y));
    const right = Math.max(...boxes.map((box) => box.x + box.width));
    const bottom = Math.max(...boxes.map((box) => box.y + box.height));
    const [width, height] = this.size;
    const scale = Math.max(Math.min((width - 40) / (right - left), (height - 40) / (bottom - top), 1), MIN_SCALE);
    this.at = { x: width / 2 - ((left + right) / 2) * scale, y: height / 2 - ((top + bottom) / 2) * scale, scale };
    this.apply();
  }

  /** A card's rectangle in the drawing's own pixels. */
  boxOf(card) {
    const inner = card.querySelector(".fm-border").getBBox();
    const to = card.getCTM();
    const from = this.viewport.getCTM();
    if (!to || !from) return null;
    const matrix = from.inverse().multiply(to);
    return { x: matrix.e, y: matrix.f, width: inner.width, height: inner.height };
  }

  zoom(factor, center) {
    this.touched = true;
    const [width, height] = this.size;
    const [cx, cy] = center ?? [width / 2, height / 2];
    const scale = Math.min(Math.max(this.at.scale * factor, MIN_SCALE), MAX_SCALE);
    const by = scale / this.at.scale;
    this.at = { x: cx - (cx - this.at.x) * by, y: cy - (cy - this.at.y) * by, scale };
    this.schedule();
  }

  pan(dx, dy) {
    this.touched = true;
    this.at = { ...this.at, x: this.at.x + dx, y: this.at.y + dy };
    this.schedule();
  }

  /** Redraw once per frame, however many events there are. */
  schedule() {
    this.pending ??= requestAnimationFrame(() => {
      this.pending = undefined;
      this.apply();
    });
  }

  listen() {
    const surface = this.surface;
    let drag = null;
    surface.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      drag = { x: event.clientX, y: event.clientY, moved: false, id: event.pointerId };
    });
    surface.addEventListener("pointermove", (event) => {
      if (!drag || event.pointerId !== drag.id) return;
      const [dx, dy] = [event.clientX - drag.x, event.clientY - drag.y];
      if (!drag.moved && Math.hypot(dx, dy) < 4) return;
      if (!drag.moved) surface.setPointerCapture(drag.id);
      drag = { ...drag, x: event.clientX, y: event.clientY, moved: true };
      surface.classList.add("fm-dragging");
      this.pan(dx, dy);
    });
    const drop = (event) => {
      surface.classList.remove("fm-dragging");
      const moved = drag?.moved;
      drag = null;
      if (event.type === "pointerup" && !moved) this.choose(event.target);
    };
    surface.addEventListener("pointerup", drop);
    surface.addEventListener("pointercancel", drop);
    surface.addEventListener("dblclick", (event) => {
      const card = event.target.closest(".fm-node");
      if (card) this.onSelect(card.dataset.vertex || card.dataset.id, null, { open: true });
    });
    // The page scrolls with the plain wheel; only Ctrl, Command and the pinch gesture zoom.
    surface.addEventListener(
      "wheel",
      (event) => {
        if (!event.ctrlKey && !event.metaKey) return;
        event.preventDefault();
        event.stopPropagation();
        const frame = surface.getBoundingClientRect();
        this.zoom(Math.exp(-event.deltaY * 0.0022), [event.clientX - frame.left, event.clientY - frame.top]);
      },
      { passive: false },
    );
    surface.addEventListener("keydown", (event) => this.key(event));
  }

  choose(target) {
    const card = target.closest(".fm-node");
    const part = target.closest(".fm-subtask");
    if (!card) return this.onSelect("", null, {});
    card.focus({ preventScroll: true });
    this.onSelect(card.dataset.vertex || card.dataset.id, part ? Number(part.dataset.part) : null, {});
  }

  key(event) {
    const here = document.activeElement?.closest?.(".fm-node");
    const moves = { ArrowDown: "down", ArrowUp: "up", ArrowLeft: "left", ArrowRight: "right" };
    if (event.key === "+" || event.key === "=") this.zoom(1.25);
    else if (event.key === "-") this.zoom(0.8);
    else if (event.key === "0") this.fit();
    else if (event.key === "1") this.lifeSize();
    else if (event.key === "Escape") this.onSelect("", null, {});
    else if ((event.key === "Enter" || event.key === " ") && here) this.choose(here);
    else if (moves[event.key] && event.shiftKey) {
      const step = { down: [0, -60], up: [0, 60], left: [60, 0], right: [-60, 0] }[moves[event.key]];
      this.pan(...step);
    } else if (moves[event.key]) this.step(here, moves[event.key]);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Go to the nearest card in a direction, and into view. */
  step(from, direction) {
    const cards = [...this.cards.values()];
    const start = from && this.boxOf(from);
    let next = start ? null : cards[0];
    let best = Infinity;
    for (const card of start ? cards : []) {
      if (card === from) continue;
      const box = this.boxOf(card);
      const dx = box.x + box.width / 2 - (start.x + start.width / 2);
      const dy = box.y + box.height / 2 - (start.y + start.height / 2);
      const [along, aside] = { down: [dy, dx], up: [-dy, dx], right: [dx, dy], left: [-dx, dy] }[direction];
      const cost = along + 2.5 * Math.abs(aside);
      if (along > 4 && cost < best) [best, next] = [cost, card];
    }
    if (!next) return;
    next.focus({ preventScroll: true });
    this.reveal(next);
    this.onSelect(next.dataset.vertex || next.dataset.id, null, {});
  }

  /** Move the view no further than needed for a card to be seen. */
  reveal(card) {
    const box = this.boxOf(card);
    if (!box) return;
    const [width, height] = this.size;
    const { x, y, scale } = this.at;
    const [left, top] = [box.x * scale + x, box.y * scale + y];
    const dx = left < 20 ? 20 - left : Math.min(width - 20 - (left + box.width * scale), 0);
    const dy = top < 20 ? 20 - top : Math.min(height - 20 - (top + box.height * scale), 0);
    if (!dx && !dy) return;
    const { touched } = this;
    this.pan(dx, dy);
    this.touched = touched;
  }
}
