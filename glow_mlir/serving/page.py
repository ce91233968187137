"""The status page of a server: queue lengths, throughput and percentiles of each model, and tokens of generators."""

from __future__ import annotations

from typing import Any

from glow_mlir.serving.service import Service

PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>glow-serve</title>
<style>
  body { font: 14px/1.5 system-ui, sans-serif; margin: 2rem; color: #222; background: #fff; }
  table { border-collapse: collapse; margin-bottom: 1.5rem; }
  th, td { padding: .3rem .8rem; text-align: right; border-bottom: 1px solid #ddd; }
  th:first-child, td:first-child { text-align: left; }
  svg { display: block; }
  polyline { fill: none; stroke: #2a6fdb; stroke-width: 1.5; }
  #state { color: #666; }
  @media (prefers-color-scheme: dark) {
    body { color: #ddd; background: #181818; } th, td { border-color: #444; } polyline { stroke: #7db0ff; }
  }
</style>
<h1>glow-serve</h1>
<p id="state">…</p>
<table>
  <thead><tr><th>model</th><th>version</th><th>waiting</th><th>answers/s</th><th>last two minutes</th>
    <th>p50 ms</th><th>p90 ms</th><th>p99 ms</th><th>samples/call</th>
    <th>succeeded</th><th>failed</th><th>expired</th><th>cancelled</th><th>refused</th></tr></thead>
  <tbody id="models"></tbody>
</table>
<table hidden>
  <thead><tr><th>decoder of text</th><th>running</th><th>waiting</th><th>tokens/s</th><th>last two minutes</th>
    <th>tokens chosen</th><th>tokens of prompts</th><th>known before</th><th>drafts accepted</th></tr></thead>
  <tbody id="generators"></tbody>
</table>
<script>
  const rates = {}, before = {};
  const cell = (row, text) => { row.insertCell().textContent = text; };
  function line(values) {
    const most = Math.max(1, ...values), width = 120, height = 24;
    const points = values.map((value, at) => `${at * width / 119},${height - 1 - value / most * (height - 2)}`);
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("width", width); svg.setAttribute("height", height);
    const drawn = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
    drawn.setAttribute("points", points.join(" ")); svg.append(drawn);
    return svg;
  }
  function rateOf(key, total) {
    const now = performance.now(), last = before[key] || { total, at: now - 1000 };
    const rate = Math.max(0, (total - last.total) / (now - last.at) * 1000);
    before[key] = { total, at: now };
    (rates[key] = rates[key] || []).push(rate); rates[key] = rates[key].slice(-120);
    return rate;
  }
  function rowsOf(name, items) {
    const body = document.getElementById(name); body.textContent = "";
    body.parentElement.hidden = !items.length;
    return items.map(item => [item, body.insertRow()]);
  }
  function show(data) {
    for (const [item, row] of rowsOf("models", data.models)) {
      const key = item.name + "\\n" + item.version, rate = rateOf(key, item.succeeded), times = item.request_seconds;
      cell(row, item.name); cell(row, item.version); cell(row, item.waiting); cell(row, rate.toFixed(1));
      row.insertCell().append(line(rates[key]));
      for (const word of ["p50", "p90", "p99"]) cell(row, (times[word] * 1000).toFixed(2));
      cell(row, item.calls ? (item.samples / item.calls).toFixed(2) : "–");
      for (const word of ["succeeded", "failed", "expired", "cancelled", "refused"]) cell(row, item[word]);
    }
    for (const [item, row] of rowsOf("generators", data.generators)) {
      const key = "text\\n" + item.name, rate = rateOf(key, item.chosen_tokens);
      cell(row, item.name); cell(row, item.running); cell(row, item.waiting); cell(row, rate.toFixed(1));
      row.insertCell().append(line(rates[key]));
      for (const word of ["chosen", "prompt", "reused", "accepted"]) cell(row, item[word + "_tokens"]);
    }
  }
  async function look() {
    const state = document.getElementById("state");
    try {
      const answer = await fetch("statistics");
      const data = await answer.json();
      if (!answer.ok) throw new Error(data.error);
      show(data);
      state.textContent = new Date().toLocaleTimeString();
    } catch (error) { state.textContent = error.message; }
    setTimeout(look, 1000);
  }
  look();
</script>
</html>
"""


def page_data(service: Service) -> dict[str, list[dict[str, Any]]]:
    """The data of the page for each model that accepts requests, for JSON; durations are in seconds."""
    generators = service.generators
    return {
        "models": [dict(network.data()) for network in service.ready_networks()],
        "generators": [] if generators is None else generators.data(),
    }
