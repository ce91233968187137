// ---- graphs ----

const CELL = 220, ROW = 92, BOX = 196, TALL = 52;

function separated(detail) {
  const cut = detail.indexOf(": ");
  return [detail.slice(0, cut), detail.slice(cut + 2)];
}

function drawGraph(graph, stage) {
  const root = make("g", {}, canvas);
  const under = make("g", {}, root);
  const center = (column, layer) => [column * CELL + CELL / 2, layer * ROW + ROW / 2];
  const longest = Math.max(0, ...graph.nodes.map((node) => node[9] || 0));
  const made = graph.nodes.map((node) => drawNode(root, node, center, longest));
  for (const [source, target, label, bends] of graph.edges) {
    const [sx, sy] = center(graph.nodes[source][7], graph.nodes[source][8]);
    const [tx, ty] = center(graph.nodes[target][7], graph.nodes[target][8]);
    const stops = bends.map(([column, first, last]) => [...center(column, first), center(column, last)[1]]);
    const path = make("path", { class: "edge", d: route([sx, sy + TALL / 2], stops, [tx, ty - TALL / 2]) }, under);
    make("title", {}, path, label);
    edges.push({ path, source: made[source], target: made[target] });
  }
  const columns = Math.max(1, ...graph.nodes.map((node) => node[7] + 1), ...graph.edges.flatMap((edge) => edge[3].map((bend) => bend[0] + 0.6)));
  const layers = Math.max(1, ...graph.nodes.map((node) => node[8] + 1));
  showFacts([
    ...graph.functions.map((name) => ["function", name]),
    ["nodes", String(graph.nodes.length)],
    ["edges", String(graph.edges.length)],
    ["layers", String(layers)],
  ]);
  showPasses(stage);
  const focus = graph.nodes.length ? center(graph.nodes[0][7], 0)[0] : 0;
  const boxes = graph.nodes.map((node) => {
    const [x, y] = center(node[7], node[8]);
    return { x: x - BOX / 2, y: y - TALL / 2, width: BOX, height: TALL, fill: fill(node[1]) };
  });
  return { home: { x: -20, y: -10, width: columns * CELL + 40, height: layers * ROW + 20, focus }, boxes };
}

function drawNode(root, [kind, family, name, origins, shape, size, details, column, layer, time], center, longest) {
  const [x, y] = center(column, layer);
  const group = make("g", { class: "node" }, root);
  const isPassive = ["input", "output", "buffer"].includes(family);
  const place = { x: x - BOX / 2, y: y - TALL / 2, width: BOX, height: TALL, rx: isPassive ? TALL / 2 : 5 };
  const box = make("rect", { class: "box", ...place, fill: fill(family), "data-family": family }, group);
  const inside = BOX - (isPassive ? 36 : 16), told = time === null ? "" : micros(time);
  const beside = told ? 62 : 0;
  make("text", { class: "kind", x: told ? x - inside / 2 : x, y: y - 12, "text-anchor": told ? "start" : "middle" }, group, fitting(kind, inside - beside, "600"));
  if (told) {
    make("text", { class: "time", x: x + inside / 2, y: y - 12, "text-anchor": "end" }, group, told);
    const share = (time / Math.max(longest, 1e-9)) * (BOX - 8);
    if (share >= 2) make("rect", { class: "hot", x: x - BOX / 2 + 4, y: y + TALL / 2 - 4, width: share, height: 3 }, group);
  }
  make("text", { class: "name", x, y: y + 3, "text-anchor": "middle" }, group, fitting(named(name, origins, isPassive), inside, "400", true));
  make("text", { class: "shape", x, y: y + 17, "text-anchor": "middle" }, group, fitting(shape, inside));
  const facts = [["nodes", origins.join(", ")], ["name", name], ["shape", shape], ["bytes", bytes(size)]];
  if (told) facts.push(["time", told]);
  facts.push(...details.map(separated));
  return new Item(box, group, origins, `${kind} ${named(name, origins, isPassive)}`.trim(), facts.filter(([, value]) => value));
}

// What the model calls it: inputs and outputs have names, all else the nodes that it comes from.
function named(name, origins, isPassive) {
  if ((isPassive && name) || !origins.length) return name;
  return origins.length > 1 ? `${brief(origins[0])} +${origins.length - 1}` : brief(origins[0]);
}

// Edges turn between layers only, and pass layers upright where the layout left room beside their boxes.
function route(start, stops, end) {
  let path = `M${start}`, [ax, ay] = start;
  const turn = (x, y) => {
    const middle = (ay + y) / 2;
    path += `C${ax},${middle} ${x},${middle} ${x},${y}`;
    [ax, ay] = [x, y];
  };
  for (const [x, top, bottom] of stops) {
    turn(x, top - TALL / 2);
    ay = bottom + TALL / 2;
    path += `V${ay}`;
  }
  turn(...end);
  return path;
}
