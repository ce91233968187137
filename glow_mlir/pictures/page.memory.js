// ---- the arena over time ----

const ASIDE = { left: 74, right: 18, top: 44, bottom: 46 }; // units around the picture, for what is written there
const LEGIBLE = 10; // letters of a longer label that must fit, or it is left out

function drawMemory(memory) {
  const wide = Math.max(canvas.clientWidth - ASIDE.left - ASIDE.right, 200);
  const high = Math.max(canvas.clientHeight - ASIDE.top - ASIDE.bottom, 160);
  const count = Math.max(memory.steps.length, 1), top = Math.max(memory.size, 1);
  const begins = byTime && memory.time ? beginnings(memory.steps) : null;
  const x = (position) => (begins ? between(begins, position) / memory.time : position / count) * wide;
  const y = (byte) => high - (byte / top) * high;
  const root = make("g", {}, canvas);
  for (const [byte, text] of ticks(memory.size, Math.max(2, Math.floor(high / 90)), BYTES)) {
    make("line", { class: "grid", x1: 0, x2: wide, y1: y(byte), y2: y(byte) }, root);
    make("text", { class: "axis", x: -8, y: y(byte) + 4, "text-anchor": "end" }, root, text);
  }
  const [most, units] = begins ? [memory.time, TIMES] : [memory.steps.length, COUNTS];
  for (const [place, text] of ticks(most, Math.max(2, Math.floor(wide / 80)), units)) {
    const across = (place / Math.max(most, 1e-9)) * wide;
    make("line", { class: "grid", x1: across, x2: across, y1: high, y2: high + 5 }, root);
    make("text", { class: "axis", x: across, y: high + 18, "text-anchor": "middle" }, root, text);
  }
  make("text", { class: "axis", x: wide / 2, y: high + 36, "text-anchor": "middle" }, root, begins ? "measured time" : "instruction");
  showSwitch(memory);
  memory.buffers.forEach((buffer) => drawBuffer(root, buffer, x, y));
  if (memory.size) drawMarks(root, memory, wide, high, x, y);
  else make("text", { class: "note", x: wide / 2, y: high / 2, "text-anchor": "middle" }, root, "the arena is empty");
  showFacts([
    ["function", memory.function],
    ["arena", bytes(memory.size)],
    ["bound", `${bytes(memory.bound)}: no arena can be smaller`],
    ["constants", bytes(memory.constants)],
    ["buffers", String(memory.buffers.length)],
    ["instructions", String(memory.steps.length)],
    ...(memory.time === null ? [] : [["measured", `${micros(memory.time)}, the sum of all instructions`]]),
  ]);
  showDisturbance(memory);
  if (memory.time) showKinds(memory);
  showSteps(memory);
  const width = wide + ASIDE.left + ASIDE.right, height = high + ASIDE.top + ASIDE.bottom;
  return { home: { x: -ASIDE.left, y: -ASIDE.top, width, height }, boxes: [] };
}

// Where each instruction begins and the last one ends, in time; those in a loop share the time of the loop.
function beginnings(steps) {
  const found = [0];
  for (let first = 0, last; first < steps.length; first = last) {
    last = first + 1;
    while (last < steps.length && steps[last][6] > steps[first][6]) last += 1;
    for (let inner = first; inner < last; inner += 1) found.push(found.at(-1) + (steps[first][5] || 0) / (last - first));
  }
  return found;
}

function between(begins, position) {
  const whole = Math.min(Math.floor(position), begins.length - 1);
  return begins[whole] + ((begins[whole + 1] ?? begins[whole]) - begins[whole]) * (position - whole);
}

// What the picture goes over from left to right: instructions, or the time that they take where it was measured.
let byTime = false;

function showSwitch(memory) {
  const button = byId("axis");
  button.hidden = !memory.time;
  button.setAttribute("aria-pressed", String(byTime));
}

byId("axis").addEventListener("click", () => { byTime = !byTime; draw(); });

// Medians far above the least times were taken while something else ran.
const DISTURBED = 1.3;

function showDisturbance(memory) {
  if (!memory.time || memory.time <= DISTURBED * memory.least) return;
  const times = (memory.time / memory.least).toFixed(1);
  html("p", byId("facts"), `Disturbed: the medians are ${times} times the least times (${micros(memory.least)}). Measure again while nothing else runs.`, "warning");
}

// The size that no arena can be below, and when most of it is needed.
function drawMarks(root, memory, wide, high, x, y) {
  const bound = y(memory.bound), peak = x(memory.peak + 0.5);
  make("line", { class: "mark", x1: 0, x2: wide, y1: bound, y2: bound }, root);
  make("text", { class: "note", x: wide, y: bound - 5, "text-anchor": "end" }, root, `bound ${bytes(memory.bound)}`);
  make("line", { class: "mark", x1: peak, x2: peak, y1: -20, y2: high }, root);
  const side = peak > wide / 2 ? "end" : "start";
  make("text", { class: "note", x: peak, y: -25, "text-anchor": side }, root, `most is live at ${memory.peak}`);
}

function drawBuffer(root, [name, kind, family, origins, shape, offset, size, begin, end, views, notes], x, y) {
  const group = make("g", { class: "node" }, root);
  const area = { x: x(begin), y: y(offset + size), width: Math.max(x(end) - x(begin), 0.5), height: y(offset) - y(offset + size) };
  const box = make("rect", { class: area.width < 4 ? "box thin" : "box", ...area, fill: fill(family), "data-family": family }, group);
  for (const [, , start, length] of views) {
    if (length >= size) continue;
    const part = { x: area.x, width: area.width, y: y(offset + start + length), height: y(offset + start) - y(offset + start + length) };
    make("rect", { class: "view", ...part }, group);
  }
  const label = `${kind} ${origins.length ? origins.map(brief).join(", ") : name}`.trim();
  const short = named(name, origins, false);
  const told = area.height > 14 ? labelled([label, `${kind} ${short}`, short, brief(origins[0] ?? name)], area.width - 8) : "";
  if (told) make("text", { x: area.x + 4, y: area.y + 12 }, group, told);
  const facts = [
    ["nodes", origins.join(", ")],
    ["name", name],
    ["shape", shape],
    ...notes.map(separated),
    ["bytes", `${size.toLocaleString("en")} (${bytes(size)})`],
    ["offset", offset.toLocaleString("en")],
    ["life", `instructions ${begin} to ${end - 1}`],
    ...views.slice(0, 12).map(([part, type, start]) => [`view ${part}`, `${type} at byte ${start}`]),
  ];
  if (views.length > 12) facts.push(["views", `${views.length - 12} more`]);
  new Item(box, group, origins, label, facts.filter(([, value]) => value));
}

// The sums of instructions of one kind and kernel, the longest first.
function showKinds(memory) {
  const sums = new Map();
  for (const [kind, , kernel, , , time] of memory.steps) {
    if (time === null) continue;
    const name = kernel && kernel.replaceAll("-", "_") !== kind ? `${kind}, ${kernel}` : kind;
    const [count, sum] = sums.get(name) || [0, 0];
    sums.set(name, [count + 1, sum + time]);
  }
  const columns = [["kind", ""], ["count", "number"], ["time", "number"], ["share", "number"]];
  const table = new Table(byId("facts"), columns);
  for (const [name, [count, sum]] of sums) {
    table.add([name, count, sum, sum], [null, String(count), micros(sum), percent(sum, memory.time)]);
  }
  table.sort(2);
}

function showSteps(memory) {
  const isTimed = memory.time !== null;
  const columns = [["#", "number"], ["kind and kernel", ""], ["time", "number"], ["share", "number"], ["moved", "number"], ["nodes", ""]];
  const kept = columns.map((_, column) => column).filter((column) => isTimed || (column !== 2 && column !== 3));
  const table = new Table(byId("table"), kept.map((column) => columns[column]));
  memory.steps.forEach(([kind, , kernel, size, origins, time, depth, least], position) => {
    const keys = [position, kind, time ?? 0, time ?? 0, size, origins.map(brief).join(", ")];
    const measured = time === null ? ["", ""] : [micros(time), percent(time, memory.time)];
    const names = origins.length > 2 ? `${brief(origins[0])} +${origins.length - 1}` : origins.map(brief).join(", ");
    const cells = [String(position), null, ...measured, size ? bytes(size) : "", names];
    const row = table.add(kept.map((column) => keys[column]), kept.map((column) => cells[column]), depth > 0);
    const named = row.cells[1];
    named.style.paddingLeft = `${6 + 10 * depth}px`;
    if (kernel && kernel.replaceAll("-", "_") !== kind) words(kernel, html("div", named, null, "hint"));
    row.lastChild.title = origins.join(", ");
    row.origins = origins;
    table.choosing(row, () => chooseStep(kind, kernel, size, origins, time, least));
  });
  if (isTimed) table.sort(2);
}

// The first of ever shorter labels that fits a width, or what there is room for of the last, if that is legible.
function labelled(labels, width) {
  const whole = labels.find((label) => fitting(label, width) === label);
  if (whole !== undefined) return whole;
  const told = fitting(labels.at(-1), width, "400", true);
  return told.length >= LEGIBLE ? told : "";
}

function chooseStep(kind, kernel, size, origins, time, least) {
  const own = items.find((item) => item.origins.some((name) => origins.includes(name)));
  choose(own || null);
  const facts = [["kernel", kernel], ["moved", bytes(size)], ["nodes", origins.join(", ")]];
  if (time !== null) facts.push(["time", `${micros(time)}, at least ${micros(least)}`]);
  if (!own) describe(kind, facts, origins);
}
