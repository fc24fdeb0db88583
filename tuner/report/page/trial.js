// The panel of one trial: its parameters and metrics beside the baseline's, the exact curve of each
// free parameter, and the queries that differ most.

let openedFrom = null;

function captioned(caption, heads, rows) {
  return [element("p", { class: "caption" }, caption), tableOf(caption, heads, rows)];
}

function difference(key, n, base) {
  const values = study.column(key);
  return signedNumeral(base === null || values[n] === null || values[base] === null ? null : values[n] - values[base]);
}

function panelParts(n) {
  const base = study.data.baseline === n ? null : study.data.baseline;
  const parts = [];
  const heads = ["", "#" + n].concat(base === null ? [] : ["baseline"]);
  const params = study.fields.filter(function (field) { return field.key.startsWith("param:"); });
  parts.push(...captioned("Parameters", heads, params.map(function (field) {
    return [field.name, study.shown(field.key, n)].concat(base === null ? [] : [study.shown(field.key, base)]);
  })));
  const results = study.fields.filter(function (field) {
    return !field.key.startsWith("param:") && (study.column(field.key)[n] !== null);
  });
  parts.push(...captioned("Results", heads.concat(base === null ? [] : ["difference"]), results.map(function (field) {
    const name = field.name + (field.lower && field.key !== "seconds" ? " (lower is better)" : "");
    return [name, study.shown(field.key, n)].concat(base === null ? [] :
      [study.shown(field.key, base), difference(field.key, n, base)]);
  })));
  return parts;
}

// The objective along a free parameter, as the answer to this trial tells it.
function curveSpec(n, key, curve) {
  const field = study.field(key);
  const x = curve.at.map(function (at) { return field.isLog ? Math.log10(at) : at; });
  const margins = curve.error.map(function (error) { return error === null ? 0 : 1.96 * error; });
  const texts = curve.at.map(function (at, place) {
    return safe(field.name + " " + numeral(at) + ": " + numeral(curve.objective[place]) + " ± " + numeral(margins[place]));
  });
  const band = curve.objective.map(function (value, at) { return value + margins[at]; }).concat(
    curve.objective.map(function (value, at) { return value - margins[at]; }).reverse());
  const mine = filters.position(key, n);
  return { links: { roles: [] }, data: [
    { type: "scatter", mode: "lines", x: x.concat(x.slice().reverse()), y: band, fill: "toself", hoverinfo: "skip",
      line: { width: 0, color: "arm0" } },
    { type: "scatter", mode: "lines", x: x, y: curve.objective, hovertext: texts, hoverinfo: "text",
      line: { color: "arm0", width: 2 } },
    { type: "scatter", mode: "markers", x: [mine], y: [study.column("objective")[n]], hoverinfo: "skip",
      marker: { color: "chosen", size: 12, symbol: "star" } }],
    layout: clientLayout(210, { showlegend: false, xaxis: axisOf(key, x),
      yaxis: Object.assign({}, look.axis, { title: { text: "objective", standoff: 8 }, zeroline: false }) }) };
}

function showTrial() {
  const panel = document.getElementById("trial");
  const n = study.opened;
  if (n === null || n >= study.size) {
    panel.hidden = true;
    if (openedFrom && openedFrom.isConnected) { openedFrom.focus(); }
    openedFrom = null;
    return;
  }
  const wasHidden = panel.hidden;
  const keep = document.activeElement && document.activeElement.dataset.keep;
  if (wasHidden) { openedFrom = document.activeElement; }
  const close = element("button", { type: "button", class: "close" }, "Close");
  close.addEventListener("click", function () { study.open(null); });
  const title = element("h2", { id: "trial-title", tabindex: "-1" }, study.arm(n) + " #" + n + mark(n));
  const reason = study.reason(n);
  const said = element("p", {}, stateText(n) + (reason ? ": " + reason : ""));
  panel.replaceChildren(close, title, said);
  if (study.index(n)) { panel.append(element("p", { class: "note" }, "Index: " + study.index(n))); }
  panel.append(...panelParts(n));
  panel.hidden = false;
  const curves = window.Plotly ? study.data.curves[n] : undefined;
  Object.entries(curves || {}).forEach(function ([key, curve], at) {
    const name = study.field(key).name;
    const plot = element("div", { class: "plot small", id: "plot-curve-" + at, role: "img",
      "aria-label": "objective along " + name });
    plot.make = function () { return curveSpec(n, key, curve); };
    panel.append(element("figure", {}, element("h3", {}, "Along " + name), plot,
      element("figcaption", {}, "Computed from the one answer to this trial: what each value of " + name +
        " would have given, with the 95 % interval of its difference to the chosen one.")));
    draw(plot);
  });
  differing(panel, n);
  if (!keep) { title.focus({ preventScroll: true }); }
  panel.scrollTop = 0;
}

// The queries in which the trial is furthest from the baseline.
function differing(panel, n) {
  const kept = study.data.differing;
  const rows = kept && kept.trials[n];
  if (!rows) { return; }
  panel.append(...captioned("Queries that differ most from the baseline, of the tune queries",
    ["query", "#" + n, "baseline", "difference"], rows.map(function ([query, mine, theirs]) {
      return [queryLink(panel, ...kept.queries[query]), numeral(mine), numeral(theirs), signedNumeral(mine - theirs)];
    })));
}

// Leads to a query in the list, which has the trial beside it: its panel makes room for that.
function queryLink(panel, text, id) {
  if (id === null) { return text; }
  const link = element("a", { href: "#query=" + encodeURIComponent(id) }, text);
  link.addEventListener("click", function () {
    panel.hidden = true;
    openedFrom = null;
    // Where the address is there already, following it would do nothing.
    if (location.hash === link.hash) { window.dispatchEvent(new HashChangeEvent("hashchange")); }
  });
  return link;
}

study.on("data", function () {
  if (!document.getElementById("trial")) {
    const panel = element("aside", { id: "trial", "aria-labelledby": "trial-title", hidden: true });
    document.body.append(panel);
    document.addEventListener("keydown", function (event) {
      if (event.key === "Escape" && study.opened !== null) { study.open(null); }
    });
  } else if (!document.getElementById("trial").hidden) {
    showTrial();
  }
});
study.on("trial", showTrial);
