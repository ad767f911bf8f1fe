// The job view: header, tabs, and what they show. All that it knows is in the model's traits; the kernel is needed only
// for Run and Cancel.

const NARROW = 760;
const TOUCH_MS = 15000;
const [MIN_HEIGHT, MAX_HEIGHT] = [380, 660];

class JobView {
  constructor(model) {
    this.model = model;
    this.about = model.get("_about");
    this.look = this.about.look;
    this.frame = model.get("_frame");
    this.tasks = new TaskTable(model.get("_tasks"));
    this.collapsed = Boolean(this.about.collapsible);
    const shared = { about: this.about, look: this.look, onSelect: (...args) => this.select(...args) };
    this.graphs = Object.fromEntries(["stream", "job", "execution", "regions"].map((kind) => [kind, new GraphPane(shared)]));
    this.slots = new SlotsPane(shared);
    this.timeline = new TimelinePane(shared);
    this.findings = new FindingsPane({ onShow: (id) => this.showVertex(id) });
    this.details = new DetailsPane({
      about: this.about,
      look: this.look,
      onClose: () => this.select("", null, {}),
      onPick: (id, subtask, open) => this.select(id, subtask, { open }),
    });
    this.build();
  }

  // Structure ------------------------------------------------------------------------------------------------------

  build() {
    this.stage = h("div.fm-stage");
    this.queries = h("div.fm-queries", { role: "region", "aria-label": "Streaming queries" });
    this.errors = h("div.fm-errors");
    this.legend = h("div.fm-legend-row", { "aria-label": "Signs of states" });
    for (const [state, style] of Object.entries(this.look.states)) {
      this.legend.append(h("span", {}, stateIcon(this.look, state), style.word));
    }
    this.main = h("div.fm-main", {}, this.stage);
    this.root = h("div.flinkmagic-view", { role: "region", "aria-label": `Job ${this.about.name}` }, this.header(), this.bar(), this.main, this.queries, this.errors, this.legend);
    for (const kind of ["pointerdown", "pointermove", "wheel", "keydown"]) {
      this.root.addEventListener(kind, () => this.touch(), { passive: true });
    }
    this.root.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && this.model.get("selected")) this.select("", null, {});
    });
  }

  header() {
    this.state = h("span.fm-job-state", { role: "status" });
    this.elapsed = h("span.fm-elapsed");
    this.fill = h("div.fm-progress");
    this.count = h("span.fm-count");
    this.slotCount = h("span.fm-count");
    this.note = h("span.fm-note-text");
    this.run = h("button.fm-run", { type: "button", onclick: () => this.act() });
    const progress = h("div.fm-progress-box", { role: "progressbar", "aria-valuemin": 0, "aria-label": "Tasks finished" }, this.fill);
    this.progress = progress;
    return h("header.fm-header", {}, h("strong.fm-name", {}, this.about.name), this.state, this.elapsed, progress, this.count, this.slotCount, this.note, h("span.fm-space"), this.run);
  }

  bar() {
    this.tabs = h("div.fm-tabs", { role: "tablist", "aria-label": "Graphs of the job" });
    for (const [kind, title] of this.about.tabs) {
      this.tabs.append(h("button.fm-tab", { type: "button", role: "tab", "data-kind": kind, onclick: () => this.open(kind) }, title));
    }
    this.tabs.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const kinds = this.about.tabs.map(([kind]) => kind);
      const next = kinds[(kinds.indexOf(this.model.get("tab")) + step + kinds.length) % kinds.length];
      this.open(next);
      this.tabs.querySelector(`[data-kind=${next}]`).focus();
      event.preventDefault();
      event.stopPropagation();
    });
    this.found = h("span.fm-found", { "aria-live": "polite" });
    this.search = h("input.fm-search", { type: "search", placeholder: "Search", "aria-label": "Search operators", oninput: () => this.find(), onkeydown: (event) => this.searchKey(event) });
    const tool = (text, title, action) => h("button.fm-tool", { type: "button", title, "aria-label": title, onclick: action }, text);
    this.collapse = tool("Collapse", "Draw chains of vertices and regions as one box each", () => this.toggleCollapse());
    this.tools = h("div.fm-tools", {}, this.search, this.found, this.collapse,
      tool("Critical path", "Show the path that takes longest", () => this.critical()),
      tool("−", "Zoom out (−, or Ctrl and wheel)", () => this.graph?.zoom(0.8)),
      tool("+", "Zoom in (+, or Ctrl and wheel)", () => this.graph?.zoom(1.25)),
      tool("Fit", "Show the whole graph (0)", () => this.graph?.fit()),
      tool("100 %", "Show it at its own size (1)", () => this.graph?.lifeSize()));
    return h("div.fm-bar-row", {}, this.tabs, this.tools);
  }

  get graph() {
    return this.graphs[this.model.get("tab")];
  }

  // What the model says --------------------------------------------------------------------------------------------

  /** Show what the traits hold; called once the view is in the page. */
  start() {
    if (this.stopped) return;
    this.openTab();
    this.frameChanged();
    this.selectedChanged();
    // Cells of a notebook are often laid out only when they are scrolled to, and the details take room from the stage.
    this.watcher = new ResizeObserver(() => {
      this.root.classList.toggle("fm-narrow", this.root.clientWidth < NARROW);
      if (!this.stage.clientWidth) return;
      if (this.graph && !this.graph.touched) this.graph.fitReadable();
      if (this.model.get("tab") === "timeline") this.timeline.draw();
      const card = this.graph?.card(this.model.get("selected"));
      if (card) this.graph.reveal(card);
    });
    for (const node of [this.stage, ...Object.values(this.graphs).map((pane) => pane.root)]) this.watcher.observe(node);
    this.clock = setInterval(() => this.tick(), 200);
    const on = (name, does) => {
      this.model.on(`change:${name}`, does);
      this.unhook.push([`change:${name}`, does]);
    };
    this.unhook = [];
    on("_frame", () => this.frameChanged());
    on("_tasks", () => this.tasksChanged());
    on("_findings", () => this.findingsChanged());
    on("_measures", () => this.refresh());
    on("tab", () => this.openTab());
    on("selected", () => this.selectedChanged());
    for (const kind of ["stream", "job", "execution", "regions", "collapsed"]) on(`_${kind}`, () => this.openTab());
  }

  stop() {
    this.stopped = true;
    clearInterval(this.clock);
    this.watcher?.disconnect();
    for (const [name, does] of this.unhook ?? []) this.model.off(name, does);
  }

  open(kind) {
    this.model.set("tab", kind);
    this.model.save_changes();
    if (this.matches?.length) this.showMatch();
  }

  openTab() {
    const tab = this.model.get("tab");
    for (const button of this.tabs.children) {
      const is = button.dataset.kind === tab;
      button.setAttribute("aria-selected", String(is));
      button.tabIndex = is ? 0 : -1;
    }
    this.tools.classList.toggle("fm-off", !(tab in this.graphs));
    this.collapse.hidden = tab !== "job" || !this.about.collapsible;
    this.collapse.setAttribute("aria-pressed", String(this.collapsed));
    if (tab === "timeline") {
      replaceChildren(this.stage, this.timeline.root);
      return this.timeline.update(this.frame, this.tasks);
    }
    if (tab === "findings") return replaceChildren(this.stage, this.findings.root);
    const pane = this.graphs[tab];
    const picture = this.model.get(tab === "job" && this.collapsed ? "_collapsed" : `_${tab}`);
    if (!picture?.tree) {
      const words = picture?.error ?? "Laying out …";
      return replaceChildren(this.stage, h("div.fm-empty", {}, words));
    }
    if (this.stage.firstChild !== pane.root) replaceChildren(this.stage, pane.root, tab === "regions" ? this.slots.root : null);
    this.heighten(picture);
    pane.show(picture);
    pane.paint(this.frame);
    pane.markFound(this.findings.byVertex);
    pane.mark(this.model.get("selected"));
    if (tab === "regions") this.slots.update(this.frame, this.tasks);
  }

  /** Give the stage the height that the drawing needs, within reason; the reader's own choice (dragging) stays. */
  heighten({ height, width }) {
    if (this.root.classList.contains("fm-narrow")) return;
    const scale = Math.min((this.stage.clientWidth || 900) / width, 1);
    const wanted = Math.round(Math.min(Math.max(height * scale, MIN_HEIGHT), MAX_HEIGHT));
    const has = Math.round(this.main.getBoundingClientRect().height);
    if (this.given !== undefined && Math.abs(has - this.given) > 2) return;
    this.given = Math.max(wanted, this.given ?? 0);
    this.main.style.height = `${this.given}px`;
  }

  frameChanged() {
    this.frame = this.model.get("_frame");
    this.arrived = performance.now();
    const { status, glyph, tone, done = 0, total = 0, reused, slots_used, slots_total, action, note } = this.frame;
    this.state.textContent = status ? `${glyph} ${status}` : "not run yet";
    this.state.dataset.tone = tone ?? "CREATED";
    const kept = reused ? `, ${showNumber(reused)} reused` : "";
    this.count.textContent = total ? `${showNumber(done)} / ${plural(total, "task")}${kept}` : "";
    this.slotCount.textContent = known(slots_total) ? `${slots_used ?? 0} / ${plural(slots_total, "slot")}` : "";
    this.note.textContent = note ?? "";
    replaceChildren(this.fill, ...(this.frame.bar ?? []).map(([state, share]) => {
      const piece = h("i", { "data-state": state });
      piece.style.width = `${share * 100}%`;
      return piece;
    }));
    this.progress.setAttribute("aria-valuemax", total);
    this.progress.setAttribute("aria-valuenow", done);
    this.run.hidden = action === "none" || !action;
    this.run.disabled = action === "wait";
    this.run.textContent = { run: "▶ Run", again: "↻ Run again", cancel: "■ Cancel", wait: "Cancelling …" }[action] ?? "";
    this.run.dataset.action = action;
    replaceChildren(this.queries, ...(this.frame.queries ?? []).map(queryBox));
    replaceChildren(this.errors, ...(this.frame.errors ?? []).map(errorBox));
    this.tick();
    this.graph?.paint(this.frame);
    this.findingsChanged();
  }

  /** Show what lost time: in its tab, in the tab's title, and as marks on the vertices. */
  findingsChanged() {
    this.findings.update(this.model.get("_findings"), this.frame);
    const tab = this.tabs.querySelector("[data-kind=findings]");
    tab.textContent = this.findings.title;
    tab.hidden = Boolean(this.frame.queries?.length); // nothing is looked for in streams
    this.graph?.markFound(this.findings.byVertex);
    this.refresh();
  }

  tasksChanged() {
    this.tasks = new TaskTable(this.model.get("_tasks"));
    this.refresh();
  }

  refresh() {
    const tab = this.model.get("tab");
    if (tab === "timeline") this.timeline.update(this.liveFrame(), this.tasks);
    if (tab === "regions") this.slots.update(this.frame, this.tasks);
    if (this.model.get("selected")) this.showDetails(this.model.get("selected"));
  }

  showDetails(id, subtask) {
    const [found, measured] = [this.findings.byVertex.get(id) ?? [], this.model.get("_measures")?.[id]];
    this.details.show(id, { frame: this.frame, tasks: this.tasks, found, measured }, subtask);
  }

  liveFrame() {
    const since = this.frame.live ? performance.now() - this.arrived : 0;
    return { ...this.frame, since_start: (this.frame.elapsed ?? 0) + since };
  }

  tick() {
    const { elapsed, live } = this.frame;
    const ms = known(elapsed) ? elapsed + (live ? performance.now() - this.arrived : 0) : NaN;
    const text = known(ms) ? showDuration(ms) : "";
    if (this.elapsed.textContent !== text) this.elapsed.textContent = text;
  }

  // What the reader does -------------------------------------------------------------------------------------------

  /** Tell the kernel that the view is in use: an unused one becomes a picture when its job is over. */
  touch() {
    const now = performance.now();
    if (now - (this.touched ?? -Infinity) < TOUCH_MS) return;
    this.touched = now;
    this.model.send({ type: "touch" });
  }

  act() {
    const { action } = this.frame;
    this.run.disabled = true;
    this.model.send({ type: action === "cancel" ? "cancel" : "run" });
    // If the kernel is busy, nothing answers immediately; the button comes back for another try.
    setTimeout(() => (this.run.disabled = this.frame.action === "wait"), 3000);
  }

  select(id, subtask, { open = false } = {}) {
    if (open && this.collapsed && this.model.get("tab") === "job") {
      const ids = this.about.groups[id]?.members ?? [id];
      this.collapsed = false;
      this.openTab();
      this.graph.fitTo(ids);
      if (this.about.groups[id]) id = "";
    }
    this.subtask = subtask;
    if (this.model.get("selected") === id) {
      if (id && subtask != null) this.showDetails(id, subtask);
      return;
    }
    this.model.set("selected", id);
    this.model.save_changes();
  }

  /** Select a vertex in the job graph, and bring it into sight. */
  showVertex(id) {
    this.open("job");
    if (this.model.get("selected") === id) this.selectedChanged();
    else this.select(id, null, { open: !this.graph.card(id) });
  }

  selectedChanged() {
    const id = this.model.get("selected");
    for (const pane of Object.values(this.graphs)) pane.mark(id);
    this.root.classList.toggle("fm-with-details", Boolean(id));
    if (!id) return this.details.root.remove();
    if (!this.details.root.isConnected) this.main.append(this.details.root);
    this.showDetails(id, this.subtask ?? null);
    const card = this.graph?.card(id);
    if (card) requestAnimationFrame(() => this.graph?.reveal(card));
  }

  // Search and paths -----------------------------------------------------------------------------------------------

  find() {
    const words = this.search.value.trim().toLowerCase();
    this.matches = words
      ? this.about.search.filter(([, text]) => words.split(/\s+/).every((word) => text.includes(word))).map(([id]) => id)
      : null;
    this.found.textContent = this.matches ? `${this.matches.length} of ${this.about.search.length}` : "";
    this.match = -1;
    const ids = this.matches && new Set(this.matches.flatMap((id) => [id, this.about.group_of[id]].filter(Boolean)));
    for (const pane of Object.values(this.graphs)) pane.emphasize(ids);
    if (this.matches?.length) this.nextMatch();
  }

  searchKey(event) {
    event.stopPropagation();
    if (event.key === "Enter" && this.matches?.length) this.nextMatch();
    if (event.key === "Escape") {
      this.search.value = "";
      this.find();
    }
  }

  nextMatch() {
    this.match += 1;
    this.showMatch();
  }

  /** Bring the match, or the next one that has a card in the open tab, into sight. */
  showMatch() {
    const pane = this.graph;
    if (!pane) return;
    for (let tried = 0; tried < this.matches.length; tried++, this.match++) {
      this.match %= this.matches.length;
      const id = this.matches[this.match];
      const card = pane.card(id) ?? pane.card(this.about.group_of[id]);
      if (!card) continue;
      if (pane.at.scale < FAR) pane.fitTo([card.dataset.id]);
      pane.reveal(card);
      pane.touched = true; // a change of the window's size must not lose it again
      return;
    }
  }

  toggleCollapse() {
    this.collapsed = !this.collapsed;
    this.openTab();
  }

  /** Light up the path that took longest (or, before a run, the longest one), and fit the view to it. */
  critical() {
    const pane = this.graph;
    if (!pane) return;
    if (pane.onPath) {
      pane.onPath = false;
      return pane.emphasize(null);
    }
    const path = criticalPath(this.about, (id) => {
      const [from, to] = this.tasks.span(id);
      return known(from) ? to - from : 0;
    });
    const ids = new Set(path.flatMap((id) => [id, this.about.group_of[id]].filter(Boolean)));
    pane.onPath = true;
    pane.emphasize(ids);
    pane.fitTo(ids);
  }
}

/** The heaviest path through the job graph; each vertex weighs its duration plus a little for itself. */
function criticalPath({ order, edges }, weigh) {
  const best = new Map(order.map((id) => [id, { weight: weigh(id) + 0.001, from: null }]));
  const incoming = new Map(order.map((id) => [id, []]));
  for (const [source, target] of edges) incoming.get(target)?.push(source);
  for (const id of order) {
    const own = best.get(id).weight;
    for (const source of incoming.get(id)) {
      const weight = (best.get(source)?.weight ?? 0) + own;
      if (weight > best.get(id).weight) best.set(id, { weight, from: source });
    }
  }
  const path = [];
  let at = order.reduce((a, b) => (a === null || best.get(b).weight > best.get(a).weight ? b : a), null);
  while (at) {
    path.unshift(at);
    at = best.get(at).from;
  }
  return path;
}

const View = JobView;
