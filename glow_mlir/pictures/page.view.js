// ---- moving about: `home` holds everything, `seen` is what the canvas shows ----

const READABLE = 0.8; // pixels for a unit below which letters of a graph are too small
const LARGEST = 1.6; // pixels for a unit at which a small graph is not enlarged further
const STEP = 0.15; // of what is seen, for a press of an arrow

let home = { x: 0, y: 0, width: 1, height: 1 };
let seen = { ...home };
let isFitted = true;
let moved = false;

function show() {
  canvas.setAttribute("viewBox", `${seen.x} ${seen.y} ${seen.width} ${seen.height}`);
  const frame = byId("map").querySelector(".seen");
  if (!frame) return;
  const area = covered();
  for (const [name, value] of Object.entries(area)) frame.setAttribute(name, value);
}

// Units for a pixel, and the whole of what the canvas shows: `seen` in the middle of it.
function unit() {
  return Math.max(seen.width / Math.max(canvas.clientWidth, 1), seen.height / Math.max(canvas.clientHeight, 1));
}

function covered() {
  const width = canvas.clientWidth * unit(), height = canvas.clientHeight * unit();
  return { x: seen.x + (seen.width - width) / 2, y: seen.y + (seen.height - height) / 2, width, height };
}

function fit() {
  seen = { x: home.x, y: home.y, width: home.width, height: home.height };
  const margin = home.focus === undefined ? 1 : Math.max(1, 1 / (unit() * LARGEST));
  seen = { x: home.x - (home.width * (margin - 1)) / 2, y: home.y - (home.height * (margin - 1)) / 2, width: home.width * margin, height: home.height * margin };
  isFitted = true;
  show();
}

// A graph that is too large to be read as a whole begins at its first node.
function begin() {
  fit();
  if (home.focus === undefined || unit() <= 1 / READABLE) return;
  const width = canvas.clientWidth / READABLE, height = canvas.clientHeight / READABLE;
  const last = home.x + home.width - width;
  const left = last <= home.x ? (home.x + last) / 2 : Math.max(home.x, Math.min(home.focus - width / 2, last));
  look({ x: left, y: home.y, width, height });
}

function look(area) {
  seen = area;
  isFitted = false;
  show();
}

function lookAt(x, y) {
  const area = covered();
  look({ ...area, x: x - area.width / 2, y: y - area.height / 2 });
}

function zoom(factor, clientX, clientY) {
  const frame = canvas.getBoundingClientRect(), area = covered();
  const right = clientX === undefined ? 0.5 : (clientX - frame.left) / frame.width;
  const down = clientY === undefined ? 0.5 : (clientY - frame.top) / frame.height;
  const width = area.width * factor, height = area.height * factor;
  look({ x: area.x + (area.width - width) * right, y: area.y + (area.height - height) * down, width, height });
}

function pan(right, down) {
  const area = covered();
  look({ ...area, x: area.x + right * area.width * STEP, y: area.y + down * area.height * STEP });
}

canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  zoom(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) * 0.004), event.clientX, event.clientY);
}, { passive: false });

// One pointer drags; two zoom around the point between them.
const pointers = new Map();

function spread() {
  const [one, two] = [...pointers.values()];
  return { x: (one.x + two.x) / 2, y: (one.y + two.y) / 2, length: Math.max(Math.hypot(one.x - two.x, one.y - two.y), 1) };
}

canvas.addEventListener("pointerdown", (event) => {
  if (!pointers.size) moved = false;
  pointers.set(event.pointerId, { x: event.clientX, y: event.clientY, begin: { x: event.clientX, y: event.clientY } });
});

addEventListener("pointermove", (event) => {
  const pointer = pointers.get(event.pointerId);
  if (!pointer) return;
  const before = pointers.size === 2 ? spread() : null, scale = unit();
  const dx = event.clientX - pointer.x, dy = event.clientY - pointer.y;
  moved = moved || Math.hypot(event.clientX - pointer.begin.x, event.clientY - pointer.begin.y) > 4;
  canvas.classList.toggle("moving", moved);
  Object.assign(pointer, { x: event.clientX, y: event.clientY });
  if (before) {
    const now = spread();
    look({ ...seen, x: seen.x - (now.x - before.x) * scale, y: seen.y - (now.y - before.y) * scale });
    zoom(before.length / now.length, now.x, now.y);
  } else if (moved) {
    look({ ...seen, x: seen.x - dx * scale, y: seen.y - dy * scale });
  }
});

function release(event) {
  pointers.delete(event.pointerId);
  canvas.classList.remove("moving");
}

addEventListener("pointerup", release);
addEventListener("pointercancel", release);

// ---- the map: the whole of a graph that is too large to be read at once ----

function drawMap(boxes) {
  const map = byId("map");
  map.replaceChildren();
  map.removeAttribute("hidden"); // It takes width from the canvas, so that it is there before anything is measured.
  fit();
  const isIdle = !boxes.length || unit() <= 1 / READABLE;
  map.toggleAttribute("hidden", isIdle);
  if (isIdle) return;
  map.setAttribute("viewBox", `${home.x} ${home.y} ${home.width} ${home.height}`);
  for (const box of boxes) make("rect", box, map);
  make("rect", { class: "seen" }, map);
}

function lookByMap(event) {
  if (!event.buttons) return;
  const place = new DOMPoint(event.clientX, event.clientY).matrixTransform(byId("map").getScreenCTM().inverse());
  lookAt(place.x, place.y);
}

byId("map").addEventListener("pointerdown", lookByMap);
byId("map").addEventListener("pointermove", lookByMap);

byId("fit").addEventListener("click", fit);
byId("in").addEventListener("click", () => zoom(1 / 1.4));
byId("out").addEventListener("click", () => zoom(1.4));

// ---- search ----

let hits = [];
let current = -1;

function search() {
  const wanted = byId("search").value.trim().toLowerCase();
  hits = wanted ? items.filter((item) => item.words.includes(wanted)) : [];
  current = -1;
  canvas.classList.toggle("searching", wanted !== "");
  const found = new Set(hits);
  for (const item of items) {
    item.group.classList.toggle("is-hit", found.has(item));
    item.shape.classList.toggle("hit", found.has(item));
  }
  byId("found").textContent = wanted ? `${hits.length} found` : "";
}

function next(step) {
  if (!hits.length) return;
  current = current < 0 ? (step > 0 ? 0 : hits.length - 1) : (current + step + hits.length) % hits.length;
  const box = hits[current].shape.getBBox();
  if (home.focus !== undefined && unit() > 1 / READABLE) zoom(1 / (unit() * READABLE));
  lookAt(box.x + box.width / 2, box.y + box.height / 2);
  choose(hits[current]);
  byId("found").textContent = `${current + 1} of ${hits.length}`;
}

byId("search").addEventListener("input", search);
byId("search").addEventListener("keydown", (event) => { if (event.key === "Enter") next(event.shiftKey ? -1 : 1); });
byId("next").addEventListener("click", () => next(1));
byId("previous").addEventListener("click", () => next(-1));

function leave() {
  byId("search").value = "";
  search();
  choose(null);
  hideTip();
  canvas.focus();
}

// ---- keys ----

const KEYS = {
  ArrowLeft: () => pan(-1, 0), ArrowRight: () => pan(1, 0), ArrowUp: () => pan(0, -1), ArrowDown: () => pan(0, 1),
  "+": () => zoom(1 / 1.4), "=": () => zoom(1 / 1.4), "-": () => zoom(1.4), 0: fit, f: fit,
  n: () => next(1), N: () => next(-1), "/": () => byId("search").focus(),
};

addEventListener("keydown", (event) => {
  if (event.key === "Escape") return leave();
  const own = event.target === canvas || event.target === document.body;
  const isArrow = event.key.startsWith("Arrow");
  if (event.ctrlKey || event.metaKey || event.altKey || event.target === byId("search") || (isArrow && !own)) return;
  if (!(event.key in KEYS)) return;
  event.preventDefault();
  KEYS[event.key]();
});
