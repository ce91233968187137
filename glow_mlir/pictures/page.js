// ---- two compilations side by side ----

function drawComparison(rows) {
  const table = html("table", byId("facts"), null, "comparison");
  const head = html("tr", html("thead", table));
  const labels = DATA.compilations.map((compilation) => compilation.label);
  for (const label of ["", ...labels, labels.toReversed().join(" / ")]) html("th", head, label, "number");
  const body = html("tbody", table);
  for (const [title, one, other, change] of rows) {
    const isHeading = one === null;
    const row = html("tr", body, null, isHeading ? "heading" : one === other ? "" : "differs");
    html(isHeading ? "th" : "td", row, title);
    for (const cell of [one, other, change]) html(isHeading ? "th" : "td", row, cell, "number");
  }
  return { home: { x: 0, y: 0, width: 1, height: 1 }, boxes: [] };
}

// ---- tabs ----

const TABS = [];
if (DATA.comparison.length) TABS.push(["comparison", DATA.compilations[0], () => drawComparison(DATA.comparison)]);
for (const compilation of DATA.compilations) {
  const title = (name) => (compilation.label ? `${compilation.label}: ${name}` : name);
  if (compilation.memory) TABS.push([title("memory"), compilation, () => drawMemory(compilation.memory)]);
  for (const [stage, graph] of Object.entries(compilation.graphs)) {
    TABS.push([title(stage), compilation, () => drawGraph(graph, stage)]);
  }
}

let open = null;

// The address names what is open, so that back and forward lead to it.
function openTab(name, isAsked = false) {
  open = TABS.find(([title]) => title === name) || TABS[0];
  for (const button of byId("tabs").children) {
    const isOpen = button.textContent === open[0];
    button.setAttribute("aria-selected", String(isOpen));
    button.tabIndex = isOpen ? 0 : -1;
  }
  draw();
  if (asked() !== open[0]) location[isAsked ? "replace" : "assign"](`#${encodeURIComponent(open[0])}`);
}

function draw() {
  const isTable = open[0] === "comparison";
  for (const id of ["picture", "finder", "zoom"]) byId(id).hidden = isTable;
  document.querySelector("aside").classList.toggle("wide", isTable);
  byId("chosen").hidden = isTable;
  for (const id of ["facts", "table", "map"]) byId(id).replaceChildren();
  byId("map").setAttribute("hidden", "");
  byId("axis").hidden = true;
  canvas.replaceChildren();
  const previous = chosen ? chosen.origins : [];
  shown = open[1];
  items = [];
  edges = [];
  showLegend(open[1], open[0]);
  const picture = open[2]();
  home = picture.home;
  drawMap(picture.boxes);
  begin();
  choose(items.find((item) => item.origins.some((origin) => previous.includes(origin))) || null);
  search();
}

// The legend comes first: the height that it takes is not the canvas's.
function showLegend(compilation, title) {
  const legend = byId("legend");
  legend.replaceChildren();
  const graph = Object.entries(compilation.graphs).find(([stage]) => title.endsWith(stage));
  const families = graph ? graph[1].nodes.map((node) => node[1]) : compilation.memory ? compilation.memory.buffers.map((buffer) => buffer[2]) : [];
  const present = new Set(families.map((family) => DATA.meanings[family]));
  for (const [meaning, colour] of Object.entries(DATA.colours)) {
    if (!present.has(meaning)) continue;
    const entry = html("span", legend);
    html("i", entry).style.background = colour;
    entry.append(meaning);
  }
  for (const [className, text] of graph ? marksOfGraph(graph[1]) : marksOfMemory(compilation.memory)) {
    const entry = html("span", legend);
    html("i", entry, null, `line ${className}`);
    entry.append(text);
  }
}

// The lines that a picture has besides its boxes.
function marksOfGraph(graph) {
  return graph.nodes.some((node) => node[9] !== null) ? [["hot", "time, beside the longest"]] : [];
}

function marksOfMemory(memory) {
  if (!memory || !memory.size) return [];
  const marks = [["mark", "bound of any arena, and where most is live"]];
  const isPart = ([, , , length], size) => length < size;
  if (memory.buffers.some((buffer) => buffer[9].some((view) => isPart(view, buffer[6])))) marks.push(["view", "part of a buffer with a type of its own"]);
  return marks;
}

for (const [name] of TABS) {
  const button = html("button", byId("tabs"), name);
  button.type = "button";
  button.setAttribute("role", "tab");
  button.addEventListener("click", () => openTab(name));
  button.addEventListener("keydown", (event) => {
    const other = { ArrowRight: button.nextElementSibling, ArrowLeft: button.previousElementSibling }[event.key];
    if (other) { other.focus(); other.click(); }
  });
}

// The picture that the address names; none that can be read is none.
function asked() {
  try {
    return decodeURIComponent(location.hash.slice(1));
  } catch {
    return "";
  }
}

// What is fitted stays fitted; pictures of memory are as wide as the canvas, and are drawn again.
addEventListener("resize", () => {
  if (!open) return;
  if (home.focus === undefined) draw();
  else if (isFitted) fit();
  else show();
});
addEventListener("hashchange", () => { if (open && asked() !== open[0]) openTab(asked(), true); });
if (TABS.length) openTab(asked(), true);
