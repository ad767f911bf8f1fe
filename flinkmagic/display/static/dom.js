// Small helpers: elements, readable numbers, and drawings sent as trees. Nothing here or elsewhere parses a string as
// markup: text becomes text nodes, and only the tags below are ever made from what Python sends.

const SVG_NS = "http://www.w3.org/2000/svg";
const DRAWABLE = new Set(["svg", "g", "rect", "path", "text", "tspan", "title"]);

/** Make an HTML element: h("div.fm-a.fm-b", {title: "t", onclick: f}, child, "text"). */
function h(selector, attributes = {}, ...children) {
  const [tag, ...classes] = selector.split(".");
  const node = document.createElement(tag);
  if (classes.length) node.className = classes.join(" ");
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child != null));
  return node;
}

function svgElement(tag, attributes = {}) {
  const node = document.createElementNS(SVG_NS, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

/** Make the element that Python describes as [tag, attributes, children]. */
function drawTree([tag, attributes, children]) {
  if (!DRAWABLE.has(tag)) throw new Error(`not drawable: ${tag}`);
  const node = document.createElementNS(SVG_NS, tag);
  for (const name in attributes) {
    if (name !== "xmlns" && !name.startsWith("on")) node.setAttribute(name, attributes[name]);
  }
  for (const child of children) node.append(typeof child === "string" ? child : drawTree(child));
  return node;
}

function replaceChildren(node, ...children) {
  node.replaceChildren(...children.filter((child) => child != null));
}

function known(value) {
  return value != null && !Number.isNaN(value);
}

function showDuration(ms) {
  if (!known(ms)) return "–";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 59950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${String(seconds % 60).padStart(2, "0")} s`;
  return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, "0")} min`;
}

function showSize(bytes) {
  if (!known(bytes)) return "–";
  let amount = bytes;
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (amount < 1000) return `${unit === "B" ? amount : amount.toFixed(1)} ${unit}`;
    amount /= 1024;
  }
  return `${amount.toFixed(1)} TiB`;
}

/** Input and output: "62.5 → 5.9 KiB". */
function showFlow(show, from, to) {
  if (!known(from) && !known(to)) return "–";
  const [first, second] = [show(from), show(to)];
  const unit = second.slice(second.indexOf(" "));
  return `${unit.startsWith(" ") && first.endsWith(unit) ? first.slice(0, -unit.length) : first} → ${second}`;
}

function showNumber(value) {
  return known(value) ? value.toLocaleString("en-US") : "–";
}

function plural(number, noun) {
  return `${showNumber(number)} ${noun}${number === 1 ? "" : "s"}`;
}

function decodeStates(text) {
  const binary = atob(text);
  const codes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) codes[i] = binary.charCodeAt(i);
  return codes;
}

/** A sign for a state: its icon, coloured by the style sheet. */
function stateIcon(look, state) {
  const icon = svgElement("svg", { viewBox: "0 0 12 12", width: 12, height: 12, class: "fm-icon", "aria-hidden": "true" });
  icon.dataset.state = state;
  icon.append(svgElement("path", { d: look.states[state].icon, "fill-rule": "evenodd" }));
  return icon;
}

function median(sorted) {
  return sorted.length ? sorted[Math.floor(sorted.length / 2)] : NaN;
}
