// Parallel coordinates: a line for each trial through its parameters, up to what it is worth. A
// drag along an axis keeps the trials in that range; the fields below do the same by keyboard.

const parallel = { value: "objective" };
const mostLines = 600, mostBehind = 200, mostAxes = 10;

function parallelFields() {
  return paramFields().slice(0, mostAxes).concat(study.field(parallel.value));
}

// Each axis from 0 to 1: where a trial lies on it, and what stands at its ends.
function parallelAxis(field) {
  const positions = everyPosition(field.key);
  const known = positions.concat(field.edges && !field.choices ? [field.edges[0], field.edges[field.edges.length - 1]] : [])
    .filter(function (at) { return at !== null; });
  let low = field.choices ? 0 : Infinity, high = field.choices ? field.choices.length - 1 : -Infinity;
  known.forEach(function (at) { low = Math.min(low, at); high = Math.max(high, at); });
  if (!(high > low)) { [low, high] = [low - 0.5, low + 0.5]; }
  return {
    field: field, low: low, high: high, positions: positions,
    share: function (at) { return (at - low) / (high - low); },
    at: function (share) { return low + share * (high - low); },
    shown: function (at) { return plain(rounded(field.isLog ? Math.pow(10, at) : at)); },
  };
}

function mixed(from, to, share) {
  const [a, b] = [from, to].map(function (colour) {
    return [1, 3, 5].map(function (at) { return parseInt(colour.slice(at, at + 2), 16); });
  });
  return "rgb(" + a.map(function (part, at) { return Math.round(part + (b[at] - part) * share); }).join(",") + ")";
}

// Lines that look alike are one trace, with a gap after each.
function linesOf(name, rows, axes, line, more) {
  const x = [], y = [], customdata = [], hovertext = [];
  rows.forEach(function (n) {
    const text = aboutTrial(n);
    axes.forEach(function (axis, place) {
      const at = axis.positions[n];
      x.push(place);
      y.push(at === null ? null : axis.share(at));
      customdata.push(n);
      hovertext.push(text);
    });
    x.push(null);
    y.push(null);
    customdata.push(null);
    hovertext.push("");
  });
  return Object.assign({ type: "scatter", mode: "lines", name: safe(name), x: x, y: y, line: line,
    customdata: customdata, hovertext: hovertext, hoverinfo: "text", connectgaps: false, showlegend: false }, more);
}

function bestFirst(key) {
  const values = study.column(key), sign = study.field(key).lower ? 1 : -1;
  return function (a, b) {
    if (values[a] === null || values[b] === null) { return (values[a] === null) - (values[b] === null) || a - b; }
    return sign * (values[a] - values[b]) || a - b;
  };
}

function makeParallel() {
  const plot = document.getElementById("plot-parallel");
  const palette = colours();
  const axes = parallelFields().map(parallelAxis);
  const inside = [], outside = [];
  for (let n = 0; n < study.size; n += 1) {
    if (study.selected !== null && !study.selected.has(n)) { outside.push(n); } else { inside.push(n); }
  }
  inside.sort(bestFirst(parallel.value));
  const values = study.column(parallel.value);
  const valued = inside.filter(function (n) { return values[n] !== null; });
  const lines = valued.length <= mostLines ? valued :
    valued.slice(0, mostLines / 4).concat(spread(valued.slice(mostLines / 4), mostLines * 3 / 4));
  const lost = spread(inside.filter(function (n) { return values[n] === null; }), mostBehind);
  const data = [linesOf("not selected", spread(outside, mostBehind), axes, { color: palette.grid, width: 1 },
    { hoverinfo: "skip" })];
  if (lost.length) {
    data.push(linesOf("failed", lost, axes, { color: palette.failed, width: 1, dash: "dot" }));
  }
  const parts = 6;
  const ranks = new Map(valued.map(function (n, rank) { return [n, 1 - rank / valued.length]; }));
  for (let part = 0; part < parts; part += 1) {  // the worst first, so that the best lies on top
    const rows = lines.filter(function (n) {
      return Math.min(parts - 1, Math.floor(ranks.get(n) * parts)) === part;
    });
    data.push(linesOf("part " + part, rows, axes,
      { color: mixed(palette.line, palette.high, part / (parts - 1)), width: 1 + part / 4 }));
  }
  [["baseline", "baseline", "dot"], ["chosen", study.data.called, "solid"]].forEach(function ([key, called, dash]) {
    const n = study.data[key];
    if (n === null || !study.isSelected(n)) { return; }
    data.push(linesOf(called, [n], axes, { color: palette[key], width: 3, dash: dash }, { showlegend: true }));
  });
  if (study.opened !== null && study.opened < study.size) {
    data.push(linesOf("#" + study.opened, [study.opened], axes, { color: palette.ink, width: 3 }, { showlegend: true }));
  }
  const annotations = [], shapes = [];
  axes.forEach(function (axis, place) {
    shapes.push({ type: "line", x0: place, x1: place, y0: 0, y1: 1, line: { color: palette.line, width: 1 } });
    const range = filters.get("range " + axis.field.key);
    if (range) { shapes.push(...rangeShapes(range, axis, place, palette)); }
    axisLabels(axis).forEach(function ([share, text]) {
      annotations.push({ x: place, y: share, text: safe(text), showarrow: false, font: { size: 11, color: palette.muted },
        xanchor: place === axes.length - 1 ? "right" : "left", xshift: place === axes.length - 1 ? -4 : 4,
        bgcolor: palette.paper, opacity: 0.9, borderpad: 0 });
    });
  });
  parallel.axes = axes;
  const isNarrow = (isPrinting ? printedWidth : plot.clientWidth) < 130 * axes.length;
  const names = axes.map(function (axis) { return safe(shortText(axis.field.name + (axis.field.isLog ? " (log)" : ""), 22)); });
  names.forEach(function (name, place) {
    annotations.push({ x: place, y: 1.04, text: name, showarrow: false, font: { size: 12, color: palette.ink },
      yanchor: "bottom", xanchor: isNarrow ? "left" : "center", textangle: isNarrow ? -35 : 0 });
  });
  return { data: data, links: { roles: [] }, layout: clientLayout(isNarrow ? 460 : 420, {
    margin: Object.assign({}, look.layout.margin, isNarrow ? { t: 90, r: 36 } : { t: 30 }),
    xaxis: Object.assign({}, look.axis, { range: [isNarrow ? -0.15 : -0.4, axes.length - (isNarrow ? 0.5 : 0.6)],
      showgrid: false, zeroline: false, showticklabels: false, showline: false }),
    yaxis: Object.assign({}, look.axis, { range: [-0.06, 1.06], showgrid: false, showticklabels: false, zeroline: false,
      showline: false }),
    legend: Object.assign({}, look.layout.legend, { y: -0.02, yanchor: "top" }),
    annotations: annotations, shapes: shapes,
  }) };
}

function shortText(text, most) { return text.length <= most ? text : text.slice(0, most - 1) + "…"; }

function axisLabels(axis) {
  const field = axis.field;
  if (field.choices && field.choices.length <= 12) {
    return field.choices.map(function (choice, at) { return [axis.share(at), shortText(choice, 14)]; });
  }
  if (field.choices) { return []; }
  if (field.kind === "integer" && field.ticks && field.ticks.length && field.ticks.length <= 12) {
    return field.ticks.map(function (tick) { return [axis.share(tick[0]), tick[1]]; });
  }
  return [[0, axis.shown(axis.low)], [0.5, axis.shown(axis.at(0.5))], [1, axis.shown(axis.high)]];
}

function rangeShapes(range, axis, place, palette) {
  const parts = range.places ? Array.from(range.places).map(function (at) { return [at - 0.2, at + 0.2]; }) :
    [[Math.max(range.low, axis.low), Math.min(range.high, axis.high)]];
  return parts.map(function ([low, high]) {
    return { type: "rect", x0: place - 0.03, x1: place + 0.03, y0: axis.share(low), y1: axis.share(high),
      line: { color: palette.chosen, width: 1 }, fillcolor: palette.chosen, opacity: 0.5 };
  });
}

// A box across axes sets the range of each of them; one between two, that of the nearer.
function selectRanges(range) {
  const [left, right] = range.x.slice().sort(function (a, b) { return a - b; });
  const [low, high] = range.y.slice().sort(function (a, b) { return a - b; });
  const axes = parallel.axes;
  let places = axes.map(function (_, place) { return place; }).filter(function (place) {
    return left <= place && place <= right;
  });
  if (!places.length) {
    const middle = Math.round((left + right) / 2);
    places = [Math.min(Math.max(middle, 0), axes.length - 1)];
  }
  filters.change(places.map(function (place) {
    return ["range " + axes[place].field.key, rangeCondition(axes[place].field, axes[place].at(low), axes[place].at(high))];
  }), "parallel");
}

function rangeCondition(field, low, high) {
  if (!field.choices) { return filters.within(field.key, low, high); }
  return filters.choices(field.key, field.choices.map(function (_, at) { return at; }).filter(function (at) {
    return low - 0.25 <= at && at <= high + 0.25;
  }));
}

// The same by keyboard: ends of a range, or boxes to tick.
function rangeFields() {
  const home = element("div", { class: "ranges" });
  study.fields.forEach(function (field) {
    if (field.group === "param" || field.group === "index" || field.key === "objective" || field.group === "metric") {
      home.append(field.choices ? choiceFields(field) : numberFields(field));
    }
  });
  [["arm", study.data.arms.map(function (arm) { return arm.name; })],
    ["state", study.data.states.filter(function (_, at) { return study.data.state.includes(at); })],
    ["index", study.data.indexes]].forEach(function ([name, texts]) {
    if (texts.length > 1) { home.append(textFields(name, texts)); }
  });
  return home;
}

function numberFields(field) {
  const box = element("fieldset", { "data-of": field.key }, element("legend", {}, field.name));
  const ends = ["from", "to"].map(function (end) {
    const input = element("input", { type: "number", step: "any", "aria-label": field.name + " " + end });
    input.addEventListener("change", apply);
    box.append(element("label", {}, end + " ", input));
    return input;
  });
  function apply() {
    const [low, high] = ends.map(function (input) {
      return input.value === "" ? null : field.isLog ? Math.log10(Number(input.value)) : Number(input.value);
    });
    filters.change([["range " + field.key, low === null && high === null ? null :
      filters.within(field.key, low === null ? -Infinity : low, high === null ? Infinity : high)]], "ranges");
  }
  box.follow = function () {
    const range = filters.get("range " + field.key);
    [range && range.low, range && range.high].forEach(function (end, at) {
      if (document.activeElement === ends[at]) { return; }
      const isSet = end !== undefined && Number.isFinite(end);
      ends[at].value = isSet ? String(rounded(field.isLog ? Math.pow(10, end) : end)) : "";
    });
  };
  return box;
}

function tickFields(name, texts, isTicked, apply) {
  const box = element("fieldset", {}, element("legend", {}, name));
  const inputs = texts.map(function (text) {
    const input = element("input", { type: "checkbox", checked: true });
    input.addEventListener("change", function () {
      const ticked = inputs.flatMap(function (one, at) { return one.checked ? [at] : []; });
      apply(ticked.length === texts.length ? null : ticked);
    });
    box.append(element("label", { class: "tick" }, input, " " + shortText(text, 60)));
    return input;
  });
  box.follow = function () {
    inputs.forEach(function (input, at) { input.checked = isTicked(at); });
  };
  return box;
}

function choiceFields(field) {
  const id = "range " + field.key;
  return tickFields(field.name, field.choices, function (at) {
    const range = filters.get(id);
    return !range || range.places.has(at);
  }, function (places) {
    filters.change([[id, places === null ? null : filters.choices(field.key, places)]], "ranges");
  });
}

function textFields(name, texts) {
  const id = "range " + name;
  return tickFields(name, texts, function (at) {
    const range = filters.get(id);
    return !range || range.texts.includes(texts[at]);
  }, function (places) {
    filters.change([[id, places === null ? null :
      filters.among(name, places.map(function (at) { return texts[at]; }))]], "ranges");
  });
}

study.on("data", function () {
  const home = document.getElementById("explore");
  if (!home || document.getElementById("ranges")) { return; }
  if (document.getElementById("plotly") && paramFields().length) {
    const plot = addFigure("parallel", "Every trial as a line",
      "A line is a trial, from parameter to parameter and up to what it is worth: the stronger the line, the better. " +
      "Drag along an axis to keep the trials in a range of it.", makeParallel);
    plot.onBox = selectRanges;
    plot.onBack = function () {
      filters.change(parallel.axes.map(function (axis) { return ["range " + axis.field.key, null]; }), "parallel");
    };
    plot.previousElementSibling.append(chooser("Last axis and colour", metricFields(), parallel.value, function (key) {
      parallel.value = key;
      redraw(plot);
    }));
  }
  const details = element("details", { id: "ranges", "data-unprinted": true },
    element("summary", {}, "Set ranges and choices"));
  details.append(rangeFields());
  home.append(details);
});

study.on("selection", function () {
  document.querySelectorAll("#ranges fieldset").forEach(function (box) { box.follow(); });
});
study.on("trial", function () { redraw(document.getElementById("plot-parallel")); });
