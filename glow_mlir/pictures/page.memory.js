// ---- the arena over time ----

const ASIDE = { left: 74, right: 18, top: 44, bottom: 46 }; // units around the picture, for what is written there
const LEGIBLE = 10; // letters of a longer label that must fit, or it is left out

function drawMemory(memory) {
  const wide = Math.max(canvas.clientWidth - ASIDE.left - ASIDE.right, 200);
  const high = Math.max(canvas.clientHeight - ASIDE.top - ASIDE.bottom, 160);
  const count = Math.max(memory.steps.length, 1), top = Math.max(memory.size, 1);
  const x = (position) => (position / count) * wide;
  const y = (byte) => high - (byte / top) * high;
  const root = make("g", {}, canvas);
  for (const byte of new Set([0, 1, 2, 3, 4].map((part) => Math.round((memory.size * part) / 4)))) {
    make("line", { class: "grid", x1: 0, x2: wide, y1: y(byte), y2: y(byte) }, root);
    make("text", { class: "axis", x: -8, y: y(byte) + 4, "text-anchor": "end" }, root, bytes(byte));
  }
  const every = Math.max(1, Math.ceil(count / Math.max(2, Math.floor(wide / 70))));
  for (let position = 0; position < count; position += every) {
    make("text", { class: "axis", x: x(position), y: high + 16 }, root, String(position));
  }
  make("text", { class: "axis", x: wide / 2, y: high + 34, "text-anchor": "middle" }, root, "instruction");
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
  showSteps(memory.steps);
  const width = wide + ASIDE.left + ASIDE.right, height = high + ASIDE.top + ASIDE.bottom;
  return { home: { x: -ASIDE.left, y: -ASIDE.top, width, height }, boxes: [] };
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
  const label = `${kind} ${origins.length ? origins.join(", ") : name}`.trim();
  const told = area.height > 14 ? fitting(label, area.width - 8) : "";
  if (told === label || told.length >= LEGIBLE) make("text", { x: area.x + 4, y: area.y + 12 }, group, told);
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

function showSteps(steps) {
  const isTimed = steps.some((step) => step[5] !== null);
  const table = html("table", byId("table"));
  const head = html("tr", html("thead", table));
  const columns = [["#", "number"], ["kind and kernel", ""], ["moved", "number"], ["nodes", ""]];
  if (isTimed) columns.splice(2, 0, ["time", "number"]);
  for (const [title, className] of columns) html("th", head, title, className);
  const body = html("tbody", table);
  steps.forEach(([kind, , kernel, size, origins, time, depth], position) => {
    const row = html("tr", body);
    row.origins = origins;
    row.tabIndex = position ? -1 : 0;
    html("td", row, String(position), "number");
    const named = words(row, kind);
    named.style.paddingLeft = `${6 + 10 * depth}px`;
    if (kernel && kernel.replaceAll("-", "_") !== kind) words(row, kernel, html("div", named, null, "hint"));
    if (isTimed) html("td", row, time === null ? "" : micros(time), "number");
    html("td", row, size ? bytes(size) : "", "number");
    words(row, origins.length > 3 ? `${origins.slice(0, 2).join(", ")} +${origins.length - 2}` : origins.join(", "));
    row.addEventListener("click", () => chooseStep(kind, kernel, size, origins, time));
    row.addEventListener("keydown", (event) => walkRows(event, row));
  });
}

// Text that breaks between the words of a name: behind `_`, `-`, `/` and `.`.
function words(row, text, cell = html("td", row)) {
  for (const word of text.split(/(?<=[_/.-])(?=...)/)) cell.append(word, document.createElement("wbr"));
  return cell;
}

function chooseStep(kind, kernel, size, origins, time) {
  const own = items.find((item) => item.origins.some((name) => origins.includes(name)));
  choose(own || null);
  const facts = [["kernel", kernel], ["moved", bytes(size)], ["nodes", origins.join(", ")]];
  if (time !== null) facts.push(["time", micros(time)]);
  if (!own) describe(kind, facts, origins);
}

// One row is a stop of Tab; arrows lead from row to row, and Enter chooses.
function walkRows(event, row) {
  if (event.key === "Enter") row.click();
  const other = { ArrowDown: row.nextElementSibling, ArrowUp: row.previousElementSibling }[event.key];
  if (!other) return;
  event.preventDefault();
  row.tabIndex = -1;
  other.tabIndex = 0;
  other.focus();
}
