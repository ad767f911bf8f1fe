// What lost time: the findings of the job, in a tab of their own and at the vertices where they are.

class FindingsPane {
  /** onShow(id): the reader wants to see a vertex. */
  constructor({ onShow }) {
    this.onShow = onShow;
    this.root = h("div.fm-findings", { role: "region", "aria-label": "Findings" });
    this.byVertex = new Map();
    this.known = false;
  }

  /** told: what the kernel has found; empty if nobody has looked yet. */
  update(told, frame) {
    const key = `${JSON.stringify(told)}|${frame.status}`;
    if (key === this.shown) return;
    this.shown = key;
    this.known = told?.found !== undefined;
    const found = told?.found ?? [];
    this.count = found.length;
    this.byVertex = byVertex(found);
    const waiting = frame.live ? "Looking for what loses time …" : frame.status ? "" : "The job has not run.";
    const notes = [told?.path, this.known ? told.none : waiting];
    const items = found.map((one) => h("li", {}, findingBox(one, () => this.onShow(one.vertex))));
    replaceChildren(this.root, ...notes.filter(Boolean).map((text) => h("p", {}, text)), h("ol", {}, ...items));
  }

  get title() {
    return this.known ? `Findings (${this.count})` : "Findings";
  }
}

function byVertex(found) {
  const groups = new Map();
  for (const one of found) groups.set(one.vertex, [...(groups.get(one.vertex) ?? []), one]);
  return groups;
}

/** A finding: what, where, what it cost, and the cure as code to copy; with `onShow` its title leads to its vertex. */
function findingBox(one, onShow = null) {
  const what = onShow ? h("button.fm-finding-what", { type: "button", title: "Show its vertex", onclick: onShow }, one.what) : h("div.fm-finding-what", {}, one.what);
  const place = [one.where, one.operator].filter(Boolean).join(" · ");
  return h("div.fm-finding", { "data-rule": one.rule, "data-vertex": one.vertex },
    h("div.fm-finding-head", {}, what, h("span.fm-finding-cost", {}, one.cost)),
    h("small", {}, place),
    one.code ? h("pre", {}, one.code) : null,
    h("small", {}, one.basis),
    h("div.fm-cure", {}, h("pre", {}, one.cure), copyButton(one.cure)));
}

function copyButton(text) {
  const button = h("button", { type: "button", title: "Copy the cure", onclick: async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      // Without permission, and on pages that are not served securely, the reader copies it by hand.
      getSelection().selectAllChildren(button.previousSibling);
      button.textContent = "Selected";
    }
    setTimeout(() => (button.textContent = "Copy"), 1500);
  } }, "Copy");
  return button;
}
