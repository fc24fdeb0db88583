// The section of all trials: its parts are made here, for the figures and the table that follow.
// First a figure of any two fields, coloured by the arm, by the index, or by a metric.

const scatter = { x: null, y: "objective", colour: "arm" };

// A figure that the script alone makes; `make` returns what to draw.
function addFigure(name, title, caption, make) {
  const plot = element("div", { class: "plot", id: "plot-" + name, role: "img",
    "aria-labelledby": "title-" + name, "aria-describedby": "caption-" + name });
  plot.make = make;
  const made = element("figure", { id: "figure-" + name }, element("h3", { id: "title-" + name }, title),
    element("div", { class: "controls" }), plot,
    element("figcaption", { id: "caption-" + name }, caption));
  document.getElementById("explore").append(made);
  seen.observe(plot);
  return plot;
}

function clientLayout(height, more) {
  return Object.assign({}, look.layout, { height: height, showlegend: true }, more);
}

function makeScatter() {
  const { x, y, colour } = scatter;
  let made;
  if (colour === "arm" || colour === "index") {
    made = trialTraces(x, y, colour === "arm" ? undefined : function (n) {
      const at = study.data.index[n];
      return at === null ? { name: "no index", place: 7 } : { name: study.index(n), place: at };
    });
  } else {
    made = trialTraces(x, y);
    const values = study.column(colour);
    const known = values.filter(function (value) { return value !== null; });
    const low = known.reduce(function (a, b) { return Math.min(a, b); }, Infinity);
    const high = known.reduce(function (a, b) { return Math.max(a, b); }, -Infinity);
    let isFirst = true;
    made.data.forEach(function (trace, at) {
      if (!/^(arm|stopped)$/.test(made.links.roles[at])) { return; }
      trace.marker = Object.assign({}, trace.marker, {
        color: trace.customdata.map(function (n) { return values[n]; }), cmin: low, cmax: high, opacity: 1,
        colorscale: look.heatmap.colorscale, reversescale: Boolean(study.field(colour).lower),
        line: { color: "muted", width: 0.5 }, showscale: isFirst,
        colorbar: { title: { text: safe(study.field(colour).name), side: "right" }, thickness: 12, outlinewidth: 0 },
      });
      isFirst = false;
    });
  }
  return { data: made.data, links: made.links, layout: clientLayout(390, {
    xaxis: axisOf(x, everyPosition(x)), yaxis: axisOf(y, everyPosition(y)) }) };
}

study.on("data", function () {
  const home = document.getElementById("explore");
  if (!home || document.getElementById("figure-scatter")) { return; }
  const note = document.getElementById("unexplored");
  if (note) { note.remove(); }
  home.append(element("p", { class: "note", id: "how" },
    "Drag over a figure to select the trials in a box; every other figure, and the table, follows. ",
    "A double click on it takes its box back. A click on a point shows its trial."));
  const toggle = element("button", { type: "button", "aria-pressed": String(isDragging), id: "dragging" },
    "Drag to select");
  toggle.addEventListener("click", function () {
    setDragging(!isDragging);
    toggle.setAttribute("aria-pressed", String(isDragging));
  });
  home.append(toggle);
  if (!document.getElementById("plotly")) { return; }
  const all = paramFields().concat(metricFields());
  const costs = study.fields.filter(function (field) { return field.lower && field.group === "metric"; });
  scatter.x = (costs[0] || all[0]).key;
  const plot = addFigure("scatter", "Any two of all", "", makeScatter);
  function choose(side) {
    return function (key) {
      scatter[side] = key;
      redraw(plot);
    };
  }
  const groups = [{ key: "arm", name: "arm" }].concat(
    study.data.indexes.length > 1 ? [{ key: "index", name: "index" }] : []);
  plot.previousElementSibling.append(chooser("Across", all, scatter.x, choose("x")),
    chooser("Up", all, scatter.y, choose("y")),
    chooser("Colour", groups.concat(metricFields(), paramFields()), "arm", choose("colour")));
});

study.on("selection", function () {
  const caption = document.getElementById("caption-scatter");
  if (caption) { caption.textContent = study.selected === null ? "" : filters.summary() + "."; }
});
