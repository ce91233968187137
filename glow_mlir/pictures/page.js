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

function brief(text, length) {
  return text.length <= length ? text : `${text.slice(0, length - 1)}…`;
}

// Families get hues in the order in which they come, the same on all tabs.
const hues = new Map();
const FIXED = { input: 210, output: 210, buffer: 45, scratch: 0 };
function fill(family) {
  if (!hues.has(family)) hues.set(family, family in FIXED ? FIXED[family] : (hues.size * 137.5 + 130) % 360);
  return `hsl(${hues.get(family).toFixed(0)} var(--tone))`;
}

for (const graph of Object.values(DATA.graphs)) graph.nodes.forEach((node) => fill(node[1]));

// ---- what is drawn: each item has a shape, a tooltip, and the nodes it comes from ----

let items = [];
let edges = [];
let chosen = null;

class Item {
  constructor(shape, group, origins, label, facts) {
    Object.assign(this, { shape, group, origins, label, facts });
    this.words = [label, ...origins, ...facts.map(([, value]) => value)].join(" ").toLowerCase();
    shape.addEventListener("pointerenter", (event) => showTip(this, event));
    shape.addEventListener("pointermove", moveTip);
    shape.addEventListener("pointerleave", () => { byId("tip").hidden = true; });
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
  tip.style.left = `${Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)}px`;
  tip.style.top = `${Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8)}px`;
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
  const panel = byId("chosen");
  if (!item) return;
  panel.replaceChildren();
  html("h2", panel, item.label);
  const list = html("dl", panel);
  for (const [name, value] of item.facts) {
    html("dt", list, name);
    html("dd", list, value);
  }
  for (const name of item.origins) showLog(panel, name);
}

function showLog(panel, name) {
  const entries = DATA.log.nodes[name];
  if (!entries) return;
  html("h2", panel, `what passes did with '${name}'`);
  const log = html("div", panel, null, "log");
  let last = null;
  for (const [run, text] of entries) {
    if (run !== last) html("b", log, run ? `${run} ${DATA.log.passes[run]}` : "before all passes");
    html("div", log, DATA.log.texts[text]);
    last = run;
  }
}

// ---- the arena over time ----

const WIDE = 1200;

function drawMemory(memory) {
  const HIGH = Math.max(300, (WIDE + 220) * canvas.clientHeight / Math.max(canvas.clientWidth, 1) - 110);
  const count = Math.max(memory.steps.length, 1), top = Math.max(memory.size, 1);
  const x = (position) => (position / count) * WIDE;
  const y = (byte) => HIGH - (byte / top) * HIGH;
  const root = make("g", {}, canvas);
  for (let part = 0; part <= 4; part++) {
    const byte = (top * part) / 4;
    make("line", { class: "grid", x1: 0, x2: WIDE, y1: y(byte), y2: y(byte) }, root);
    make("text", { class: "axis", x: -8, y: y(byte) + 4, "text-anchor": "end" }, root, bytes(Math.round(byte)));
  }
  const every = Math.max(1, Math.ceil(count / 12));
  for (let position = 0; position < count; position += every) {
    make("text", { class: "axis", x: x(position), y: HIGH + 16 }, root, String(position));
  }
  make("text", { class: "axis", x: WIDE / 2, y: HIGH + 34, "text-anchor": "middle" }, root, "instruction");
  memory.buffers.forEach((buffer) => drawBuffer(root, buffer, x, y));
  const bound = y(memory.bound), peak = x(memory.peak + 0.5);
  make("line", { class: "mark", x1: 0, x2: WIDE, y1: bound, y2: bound }, root);
  make("text", { x: WIDE + 6, y: bound + 4 }, root, `bound ${bytes(memory.bound)}`);
  make("line", { class: "mark", x1: peak, x2: peak, y1: 0, y2: HIGH }, root);
  make("text", { x: peak, y: -6, "text-anchor": "middle" }, root, `most is live at ${memory.peak}`);
  showFacts([
    ["arena", bytes(memory.size)],
    ["bound", `${bytes(memory.bound)}: no arena can be smaller`],
    ["constants", bytes(memory.constants)],
    ["buffers", String(memory.buffers.length)],
    ["instructions", String(memory.steps.length)],
  ]);
  showSteps(memory.steps);
  return { x: -90, y: -30, width: WIDE + 220, height: HIGH + 80 };
}

function drawBuffer(root, [name, kind, family, origins, shape, offset, size, begin, end, views], x, y) {
  const group = make("g", { class: "node" }, root);
  const area = { x: x(begin), y: y(offset + size), width: Math.max(x(end) - x(begin), 0.5), height: y(offset) - y(offset + size) };
  const box = make("rect", { class: "box", ...area, fill: fill(family), "data-family": family }, group);
  for (const [, , start, length] of views) {
    if (length >= size) continue;
    const part = { x: area.x, width: area.width, y: y(offset + start + length), height: y(offset + start) - y(offset + start + length) };
    make("rect", { class: "view", ...part }, group);
  }
  const label = `${kind} ${name}`.trim();
  if (area.width > 40 && area.height > 12) {
    make("text", { x: area.x + 4, y: area.y + 12 }, group, brief(label, Math.floor(area.width / 6.5)));
  }
  const facts = [
    ["nodes", origins.join(", ")],
    ["shape", shape],
    ["bytes", `${size.toLocaleString("en")} (${bytes(size)})`],
    ["offset", offset.toLocaleString("en")],
    ["life", `instructions ${begin} to ${end - 1}`],
    ...views.slice(0, 12).map(([part, type, start]) => [`view ${part}`, `${type} at byte ${start}`]),
  ];
  if (views.length > 12) facts.push(["views", `${views.length - 12} more`]);
  new Item(box, group, origins, label, facts);
}

function showSteps(steps) {
  const table = html("table", byId("table"));
  const head = html("tr", html("thead", table));
  for (const [title, className] of [["#", "number"], ["kind", ""], ["kernel", ""], ["moved", "number"], ["nodes", ""]]) {
    html("th", head, title, className);
  }
  const body = html("tbody", table);
  steps.forEach(([kind, family, kernel, moved, origins], position) => {
    const row = html("tr", body);
    row.origins = origins;
    html("td", row, String(position), "number");
    html("td", row, kind);
    html("td", row, kernel);
    html("td", row, bytes(moved), "number");
    html("td", row, origins.join(", ")).title = origins.join(", ");
    row.addEventListener("click", () => {
      const own = items.find((item) => item.origins.some((name) => origins.includes(name)));
      choose(own || null);
      if (!own) showOnly(kind, [["kernel", kernel], ["moved", bytes(moved)], ["nodes", origins.join(", ")]], origins);
    });
  });
}

function showOnly(title, facts, origins) {
  const panel = byId("chosen");
  panel.replaceChildren();
  html("h2", panel, title);
  const list = html("dl", panel);
  for (const [name, value] of facts) {
    html("dt", list, name);
    html("dd", list, value);
  }
  for (const name of origins) showLog(panel, name);
}

function showFacts(facts) {
  const list = html("dl", byId("facts"));
  for (const [name, value] of facts) {
    html("dt", list, name);
    html("dd", list, value);
  }
}

// ---- graphs ----

const CELL = 190, ROW = 74, BOX = 168, TALL = 40;

function drawGraph(graph) {
  const root = make("g", {}, canvas);
  const under = make("g", {}, root);
  const center = (column, layer) => [column * CELL + CELL / 2, layer * ROW + ROW / 2];
  const made = graph.nodes.map((node) => drawNode(root, node, center));
  for (const [source, target, label, bends] of graph.edges) {
    const [sx, sy] = center(graph.nodes[source][7], graph.nodes[source][8]);
    const [tx, ty] = center(graph.nodes[target][7], graph.nodes[target][8]);
    const points = [[sx, sy + TALL / 2], ...bends.map(([column, layer]) => center(column, layer)), [tx, ty - TALL / 2]];
    const path = make("path", { class: "edge", d: curve(points) }, under);
    make("title", {}, path, label);
    edges.push({ path, source: made[source], target: made[target] });
  }
  const columns = Math.max(1, ...graph.nodes.map((node) => node[7] + 1));
  const layers = Math.max(1, ...graph.nodes.map((node) => node[8] + 1));
  showFacts([
    ...graph.functions.map((name) => ["function", name]),
    ["nodes", String(graph.nodes.length)],
    ["edges", String(graph.edges.length)],
    ["layers", String(layers)],
  ]);
  const focus = graph.nodes.length ? center(graph.nodes[0][7], 0)[0] : 0;
  return { x: -20, y: -10, width: columns * CELL + 40, height: layers * ROW + 20, focus };
}

function drawNode(root, [kind, family, name, origins, shape, size, details, column, layer], center) {
  const [x, y] = center(column, layer);
  const group = make("g", { class: "node" }, root);
  const round = ["input", "output", "buffer"].includes(family) ? TALL / 2 : 5;
  const place = { x: x - BOX / 2, y: y - TALL / 2, width: BOX, height: TALL, rx: round };
  const box = make("rect", { class: "box", ...place, fill: fill(family), "data-family": family }, group);
  const label = family === kind ? `${kind} ${name}`.trim() : kind;
  make("text", { x, y: y - 4, "text-anchor": "middle", "font-weight": 600 }, group, brief(label, 25));
  make("text", { x, y: y + 11, "text-anchor": "middle" }, group, brief(shape, 26));
  const facts = [["name", name], ["nodes", origins.join(", ")], ["shape", shape], ["bytes", bytes(size)]];
  for (const detail of details) {
    const cut = detail.indexOf(": ");
    facts.push([detail.slice(0, cut), detail.slice(cut + 2)]);
  }
  return new Item(box, group, origins, label, facts.filter(([, value]) => value));
}

function curve(points) {
  let path = `M${points[0]}`;
  for (let index = 1; index < points.length; index++) {
    const [ax, ay] = points[index - 1], [bx, by] = points[index];
    const middle = (ay + by) / 2;
    path += `C${ax},${middle} ${bx},${middle} ${bx},${by}`;
  }
  return path;
}

// ---- tabs ----

const TABS = [];
if (DATA.memory) TABS.push(["memory", () => drawMemory(DATA.memory)]);
for (const [stage, graph] of Object.entries(DATA.graphs)) TABS.push([stage, () => drawGraph(graph)]);

function openTab(name) {
  const tab = TABS.find(([title]) => title === name) || TABS[0];
  for (const button of byId("tabs").children) button.setAttribute("aria-selected", String(button.textContent === tab[0]));
  for (const id of ["facts", "table"]) byId(id).replaceChildren();
  canvas.replaceChildren();
  const previous = chosen ? chosen.origins : [];
  items = [];
  edges = [];
  home = tab[1]();
  fit();
  showLegend();
  choose(items.find((item) => item.origins.some((origin) => previous.includes(origin))) || null);
  search();
  location.hash = tab[0];
}

function showLegend() {
  const legend = byId("legend");
  legend.replaceChildren();
  const present = new Set(items.map((item) => item.shape.dataset.family));
  for (const family of hues.keys()) {
    if (!present.has(family)) continue;
    const entry = html("span", legend);
    html("i", entry).style.background = fill(family);
    entry.append(family.replaceAll("_", " "));
  }
}

// ---- moving about ----

let home = { x: 0, y: 0, width: 1, height: 1 };
let seen = { ...home };
let moved = false;

function show() {
  canvas.setAttribute("viewBox", `${seen.x} ${seen.y} ${seen.width} ${seen.height}`);
}

function fit() {
  const ratio = canvas.clientWidth / Math.max(canvas.clientHeight, 1);
  seen = { ...home };
  if (home.focus === undefined || home.height * ratio < 1400) return show();
  // A tall graph begins at its first node, at a size that can be read.
  seen = { x: home.focus - 700, y: home.y, width: 1400, height: 1400 / ratio };
  show();
}

function zoom(factor, clientX, clientY) {
  const frame = canvas.getBoundingClientRect();
  const scale = Math.max(seen.width / frame.width, seen.height / frame.height);
  const left = (clientX - frame.left - (frame.width - seen.width / scale) / 2) * scale;
  const top = (clientY - frame.top - (frame.height - seen.height / scale) / 2) * scale;
  seen = { x: seen.x + left * (1 - factor), y: seen.y + top * (1 - factor), width: seen.width * factor, height: seen.height * factor };
  show();
}

canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  zoom(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) * 0.004), event.clientX, event.clientY);
}, { passive: false });

canvas.addEventListener("pointerdown", (event) => {
  const start = { x: event.clientX, y: event.clientY, seen: { ...seen } };
  const frame = canvas.getBoundingClientRect();
  const scale = Math.max(seen.width / frame.width, seen.height / frame.height);
  moved = false;
  const move = (next) => {
    const dx = next.clientX - start.x, dy = next.clientY - start.y;
    moved = moved || Math.abs(dx) + Math.abs(dy) > 4;
    canvas.classList.toggle("moving", moved);
    seen = { ...seen, x: start.seen.x - dx * scale, y: start.seen.y - dy * scale };
    show();
  };
  const stop = () => {
    canvas.classList.remove("moving");
    removeEventListener("pointermove", move);
    removeEventListener("pointerup", stop);
  };
  addEventListener("pointermove", move);
  addEventListener("pointerup", stop);
});

byId("fit").addEventListener("click", fit);
addEventListener("resize", fit);
canvas.addEventListener("keydown", (event) => {
  if (event.key === "0") fit();
  if (event.key === "Escape") choose(null);
});

// ---- search ----

let hits = [];
let current = -1;

function search() {
  const wanted = byId("search").value.trim().toLowerCase();
  hits = wanted ? items.filter((item) => item.words.includes(wanted)) : [];
  current = -1;
  canvas.classList.toggle("searching", wanted !== "");
  for (const item of items) {
    const hit = hits.includes(item);
    item.group.classList.toggle("is-hit", hit);
    item.shape.classList.toggle("hit", hit);
  }
  byId("found").textContent = wanted ? `${hits.length} found${hits.length ? ", Enter for the next" : ""}` : "";
}

function next() {
  if (!hits.length) return;
  current = (current + 1) % hits.length;
  const box = hits[current].shape.getBBox();
  seen = { ...seen, x: box.x + box.width / 2 - seen.width / 2, y: box.y + box.height / 2 - seen.height / 2 };
  show();
  choose(hits[current]);
}

byId("search").addEventListener("input", search);
byId("search").addEventListener("keydown", (event) => { if (event.key === "Enter") next(); });

for (const [name] of TABS) {
  const button = html("button", byId("tabs"), name);
  button.type = "button";
  button.setAttribute("role", "tab");
  button.addEventListener("click", () => openTab(name));
}
if (TABS.length) openTab(decodeURIComponent(location.hash.slice(1)));
