// What axes may show: any metric over any parameter. The slices have one choice for all of them.

function inGroups(...groups) {
  return study.fields.filter(function (field) { return groups.includes(field.group); });
}

function metricFields() { return inGroups("result", "metric", "cost"); }

function paramFields() {
  return inGroups("param", "index").filter(function (field) { return field.edges.length > 2; });
}

// A labelled list to choose a field from; `choose` is told its key.
function chooser(label, fields, key, choose) {
  const list = element("select", { "aria-label": label });
  fields.forEach(function (field) {
    list.append(element("option", { value: field.key, selected: field.key === key }, field.name));
  });
  list.addEventListener("change", function () { choose(list.value); });
  return element("label", {}, label + " ", list);
}

// Of the trials for which `has` holds the best, and others evenly spread over the search: more
// points would hide each other. Of the selected ones as many again.
function shownTrials(most, has) {
  const all = Array.from({ length: study.size }, function (_, n) { return n; }).filter(has);
  if (all.length <= most) { return all; }
  const more = study.selected === null ? [] : spread(Array.from(study.selected).filter(has), most);
  const worth = study.column("objective");
  const best = all.filter(function (n) { return worth[n] !== null; })
    .sort(function (a, b) { return worth[b] - worth[a] || a - b; }).slice(0, most / 5);
  const taken = new Set(best);
  const rest = all.filter(function (n) { return !taken.has(n); });
  const found = new Set(best.concat(spread(rest, most - best.length), more));
  return Array.from(found).sort(function (a, b) { return a - b; });
}

// Where the trials of an axis lie, with room at both ends.
function spanOf(key, positions) {
  const field = study.field(key);
  const all = positions.concat(field.edges || []).filter(function (at) { return at !== null; });
  if (!all.length) { return [0, 1]; }
  let low = Infinity, high = -Infinity;
  all.forEach(function (at) { low = Math.min(low, at); high = Math.max(high, at); });
  const room = (field.edges ? 0.04 : 0.08) * (high - low) || 0.05 * Math.abs(high) || 0.5;
  return [low - room, high + room];
}

function axisOf(key, positions) {
  const field = study.field(key);
  const axis = Object.assign({}, look.axis, {
    title: { text: safe(field.title || field.name), standoff: 8 }, range: spanOf(key, positions),
    zeroline: false,
  });
  if (field.ticks && field.ticks.length) {
    axis.tickmode = "array";
    axis.tickvals = field.ticks.map(function (tick) { return tick[0]; });
    axis.ticktext = field.ticks.map(function (tick) { return safe(tick[1]); });
  }
  return axis;
}

function everyPosition(key) {
  return study.column(key).map(function (_, n) { return filters.position(key, n); });
}

// The trials over two fields: a trace for each group, which is the arm or what `groupOf` says.
function trialTraces(x, y, groupOf) {
  const groups = new Map();
  shownTrials(mostPoints, function (n) { return study.state(n) !== "failed"; }).forEach(function (n) {
    if (!isPlaced(x, y, n)) { return; }
    const isStopped = study.state(n) === "raced_out";
    const group = groupOf ? groupOf(n) : { name: study.arm(n), place: study.data.arms[study.data.arm[n]].place };
    if (group.place === null) { return; }
    const id = group.name + (isStopped ? ", stopped early" : "");
    if (!groups.has(id)) { groups.set(id, { place: group.place, isStopped: isStopped, rows: [] }); }
    groups.get(id).rows.push(n);
  });
  const data = [];
  const roles = [];
  groups.forEach(function (group, id) {
    const shape = look.symbols[group.place % look.symbols.length];
    data.push(points(id, group.rows, x, y, { color: "arm" + group.place % 8, size: 7, opacity: 0.75,
      symbol: group.isStopped ? shape + "-open" : shape }));
    roles.push(groupOf ? "trials" : group.isStopped ? "stopped" : "arm");
  });
  return markedTraces(data, roles, x, y);
}

function isPlaced(x, y, n) { return filters.position(x, n) !== null && filters.position(y, n) !== null; }

// Adds what figures of trials mark in the same way: those that failed, the baseline, the chosen one.
function markedTraces(data, roles, x, y) {
  const failed = shownTrials(mostPoints, function (n) { return study.state(n) === "failed" && isPlaced(x, y, n); });
  if (failed.length) {
    data.push(points("failed", failed, x, y, { color: "failed", size: 9, symbol: "x-thin-open",
      line: { color: "failed", width: 2 } }));
    roles.push("failed");
  }
  [["baseline", "baseline", "diamond", 11], [study.data.called, "chosen", "star", 15]].forEach(function (mark) {
    const n = study.data[mark[1]];
    if (n === null || !isPlaced(x, y, n)) { return; }
    const trace = points(mark[0], [n], x, y, { color: mark[1], size: mark[3], symbol: mark[2],
      line: { color: "paper", width: 1.5 } });
    trace.hovertext = [safe(mark[0]) + ": " + wrapped(study.about(n))];
    data.push(trace);
    roles.push(mark[1]);
  });
  return { data: data, links: { x: x, y: y, roles: roles, isWhole: true } };
}

function points(name, rows, x, y, marker) {
  return { type: "scatter", mode: "markers", name: safe(name), customdata: rows, marker: marker,
    x: rows.map(function (n) { return filters.position(x, n); }),
    y: rows.map(function (n) { return filters.position(y, n); }), hoverinfo: "text" };
}

const slices = { metric: "objective" };

changes.set("slice-", function (spec) {
  if (slices.metric === "objective" || !study.field(slices.metric)) { return spec; }
  const made = trialTraces(spec.links.x, slices.metric);
  const layout = Object.assign({}, spec.layout, { yaxis: axisOf(slices.metric, everyPosition(slices.metric)) });
  return { data: made.data, layout: layout, links: made.links };
});

study.on("data", function () {
  const first = document.querySelector("[id^='plot-slice-']");
  if (!first || document.getElementById("slices-axis")) { return; }
  const controls = element("div", { class: "controls", id: "slices-axis" });
  controls.append(chooser("Slices show", metricFields(), slices.metric, function (key) {
    slices.metric = key;
    document.querySelectorAll("[id^='plot-slice-']").forEach(redraw);
  }));
  first.closest(".charts").before(controls);
});
