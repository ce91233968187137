// ---- the passes that led to a graph ----

// Those behind the graph that is shown before this one, or all from the beginning.
function passesTo(stage) {
  const stages = Object.keys(shown.passes), graphs = Object.keys(shown.graphs);
  const before = graphs[graphs.indexOf(stage) - 1];
  return stages.slice(stages.indexOf(before) + 1, stages.indexOf(stage) + 1).flatMap((name) => shown.passes[name].map((run) => [name, run]));
}

function showPasses(stage) {
  const runs = passesTo(stage);
  if (!runs.length) return;
  const total = runs.reduce((sum, [, run]) => sum + run[4], 0);
  html("h2", byId("table"), `passes: ${runs.length} in ${micros(total * 1e6)}`);
  const columns = [["#", "number"], ["pass", ""], ["operations", "number"], ["time", "number"], ["share", "number"]];
  const table = new Table(byId("table"), columns);
  for (const [where, [number, name, before, after, seconds, counted, changed]] of runs) {
    const size = before === after ? String(after) : `${before} → ${after}`;
    const keys = [number, name, Math.abs(after - before), seconds, seconds];
    const row = table.add(keys, [String(number), name, size, micros(seconds * 1e6), percent(seconds, total)]);
    row.classList.toggle("idle", !counted.length && !changed.length);
    for (const [what, times] of counted) words(`${times} × ${what}`, html("div", row.cells[1], null, "hint"));
    table.choosing(row, () => choosePass(row, where, [number, name, before, after, seconds, counted, changed]));
  }
  table.sort(0);
}

// What a pass did: marks the nodes whose operators it made, changed or removed.
function choosePass(row, stage, [number, name, before, after, seconds, counted, changed]) {
  choose(null);
  row.classList.add("chosen");
  const touched = Object.keys(shown.log.nodes).filter((node) => shown.log.nodes[node].some(([run]) => run === number));
  const origins = new Set(touched);
  for (const item of items) item.shape.classList.toggle("same", item.origins.some((origin) => origins.has(origin)));
  describe(`${number} ${name}`, [
    ["stage", stage],
    ["operations", before === after ? String(after) : `${before} → ${after}`],
    ["time", micros(seconds * 1e6)],
    ...counted.map(([what, times]) => [what, `${times} ×`]),
    ...changed.map(([kind, old, now]) => [kind, `${old} → ${now}`]),
    ["nodes", touched.length ? touched.map(brief).join(", ") : "none"],
  ], []);
}
