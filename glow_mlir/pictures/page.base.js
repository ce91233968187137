"use strict";

// ---- data and small helpers ----

const DATA = JSON.parse(document.getElementById("data").textContent);
const SVG = "http://www.w3.org/2000/svg";
const byId = (id) => document.getElementById(id);
const canvas = byId("canvas");

function make(name, attributes = {}, parent = null, text = null) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== null) element.textContent = text;
  if (parent) parent.append(element);
  return element;
}

function html(name, parent, text = null, className = "") {
  const element = document.createElement(name);
  if (text !== null) element.textContent = text;
  if (className) element.className = className;
  if (parent) parent.append(element);
  return element;
}

function bytes(number) {
  if (number < 1024) return `${number} B`;
  return number < 1048576 ? `${(number / 1024).toFixed(1)} KiB` : `${(number / 1048576).toFixed(2)} MiB`;
}

function micros(number) {
  return number < 1000 ? `${number.toFixed(number < 10 ? 2 : 1)} µs` : `${(number / 1000).toFixed(2)} ms`;
}

function percent(part, whole) {
  return `${((100 * part) / Math.max(whole, 1e-9)).toFixed(1)} %`;
}

// Round numbers from 0 up to `most`, about so many or fewer, each with its text; all are in one unit.
const COUNTS = [["", 1]];
const BYTES = [["B", 1], ["KiB", 1024], ["MiB", 1048576], ["GiB", 1073741824]];
const TIMES = [["µs", 1], ["ms", 1e3], ["s", 1e6]];
function ticks(most, about, units) {
  const [unit, factor] = units.findLast(([, size]) => most >= size) || units[0];
  const rough = Math.max(most / factor / Math.max(about, 1), units === TIMES ? 1e-6 : 1 / factor);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((digit) => digit * power).find((found) => found >= rough * 0.999);
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const count = Math.floor(most / factor / step + 1e-9);
  return Array.from({ length: count + 1 }, (_, i) => [i * step * factor, `${(i * step).toFixed(i ? digits : 0)} ${unit}`.trim()]);
}

// Text that fits a width: its beginning where it is longer, or its end, from the beginning of a part if that fits.
const ruler = document.createElement("canvas").getContext("2d");
function fitting(text, width, weight = "400", isEnd = false) {
  ruler.font = `${weight} 11px system-ui, sans-serif`;
  const fits = (cut) => ruler.measureText(cut).width <= width;
  if (fits(text)) return text;
  const cut = (kept) => (isEnd ? `…${text.slice(text.length - kept)}` : `${text.slice(0, kept)}…`);
  let low = 0, high = text.length;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (fits(cut(middle))) low = middle;
    else high = middle - 1;
  }
  const part = isEnd ? text.slice(text.length - low).search(/[/.]./) : -1;
  return cut(part >= 0 && part < low / 2 ? low - part : low);
}

// A node's name, cut to what tells it from all others.
function brief(name) {
  return shown.names[name] ?? name;
}

function fill(family) {
  return DATA.colours[DATA.meanings[family]];
}

// ---- what is drawn: each item has a shape, a tooltip, and the nodes it comes from ----

let shown = null; // the compilation whose picture is open
let items = [];
let edges = [];
let chosen = null;

class Item {
  constructor(shape, group, origins, label, facts) {
    Object.assign(this, { shape, group, origins, label, facts });
    this.words = [label, ...origins, ...facts.map(([, value]) => value)].join(" ").toLowerCase();
    shape.addEventListener("pointerenter", (event) => { if (event.pointerType === "mouse") showTip(this, event); });
    shape.addEventListener("pointermove", moveTip);
    shape.addEventListener("pointerleave", hideTip);
    shape.addEventListener("click", () => { if (!moved) choose(this); });
    items.push(this);
  }
}

function showTip(item, event) {
  byId("tip").textContent = [item.label, ...item.facts.map(([name, value]) => `${name}: ${value}`)].join("\n");
  byId("tip").hidden = false;
  moveTip(event);
}

function moveTip(event) {
  const tip = byId("tip");
  tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8))}px`;
  tip.style.top = `${Math.max(4, Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8))}px`;
}

function hideTip() {
  byId("tip").hidden = true;
}

function choose(item) {
  chosen = item;
  const origins = new Set(item ? item.origins : []);
  for (const other of items) {
    other.shape.classList.toggle("chosen", other === item);
    other.shape.classList.toggle("same", other !== item && other.origins.some((name) => origins.has(name)));
  }
  for (const edge of edges) edge.path.classList.toggle("near", edge.source === item || edge.target === item);
  for (const row of document.querySelectorAll("#table tbody tr")) {
    row.classList.toggle("chosen", row.origins.some((name) => origins.has(name)));
  }
  if (item) describe(item.label, item.facts, item.origins);
}

function describe(title, facts, origins) {
  const panel = byId("chosen");
  panel.replaceChildren();
  html("h2", panel, title);
  showFacts(facts, panel);
  for (const name of origins) showLog(panel, name);
}

function showFacts(facts, parent = byId("facts")) {
  const list = html("dl", parent);
  for (const [name, value] of facts) {
    html("dt", list, name);
    html("dd", list, value);
  }
}

function showLog(panel, name) {
  const entries = shown.log.nodes[name];
  if (!entries) return;
  html("h2", panel, `what passes did with '${name}'`);
  const log = html("div", panel, null, "log");
  let last = null;
  for (const [run, text] of entries) {
    if (run !== last) html("b", log, run ? `${run} ${shown.log.passes[run]}` : "before all passes");
    html("div", log, shown.log.texts[text]);
    last = run;
  }
}
