// The figures: each is drawn from the JSON beside it, in the colours of the page. Points that are
// trials follow the selection, and are selected by dragging a box around them.

const look = JSON.parse(document.getElementById("look").textContent);
const dark = window.matchMedia("(prefers-color-scheme: dark)");
// Where a finger is all there is, dragging scrolls the page until the reader says otherwise.
let isDragging = !window.matchMedia("(pointer: coarse)").matches;
const printedWidth = 640;
let isPrinting = false;
// What other parts of the script do to the figures of a name before they are drawn: (spec) -> spec.
const changes = new Map();
const mostPoints = 500;

function plots() { return Array.from(document.querySelectorAll(".plot")); }

function colours() { return !isPrinting && dark.matches ? look.dark : look.light; }

// Colours come as names; what a study's texts say is never read as one.
function dressed(value, key, palette) {
  if (typeof value === "string") {
    return /color/i.test(key) && Object.hasOwn(palette, value) ? palette[value] : value;
  }
  if (Array.isArray(value)) {
    // Columns of numbers are most of a figure, and hold no colour.
    if (/^(x|y|z|customdata|selectedpoints|hovertext)$/.test(key)) { return value; }
    return value.map(function (one) { return dressed(one, key, palette); });
  }
  if (value && typeof value === "object") {
    const copy = {};
    Object.keys(value).forEach(function (name) {
      copy[name] = dressed(value[name], /colorscale/.test(key) ? key : name, palette);
    });
    return copy;
  }
  return value;
}

// Breaks a text into lines that fit beside a point, at its separators.
function wrapped(text) {
  const lines = [];
  let line = "";
  text.replace(/([;,]) /g, "$1\n").split("\n").forEach(function (part) {
    if (line && line.length + part.length > 60) {
      lines.push(line);
      line = part;
    } else {
      line = line ? line + " " + part : part;
    }
  });
  return lines.concat(line).map(safe).join("<br>");
}

function pointed(n, links) {
  const metrics = [links.x, links.y].filter(function (key) { return key && /^(metric:|seconds$)/.test(key); });
  const more = metrics.map(function (key) {
    return "; " + study.field(key).name + " " + study.shown(key, n);
  });
  // Most figures say the same of a trial, and of thousands it takes a while.
  if (!more.length) {
    if (!saidOf.has(n)) { saidOf.set(n, wrapped(study.about(n))); }
    return saidOf.get(n);
  }
  return wrapped(study.about(n) + more.join(""));
}

const saidOf = new Map();

// At most so many of a list, evenly spread, both ends included.
function spread(numbers, most) {
  if (numbers.length <= most) { return numbers; }
  const step = (numbers.length - 1) / (most - 1);
  return Array.from({ length: most }, function (_, at) { return numbers[Math.round(at * step)]; });
}

const onTrials = /^(arm|stopped|failed|trials)$/;

// Which trials a trace stands for; of thousands it shows some, but of the selected ones all it can.
function followed(trace, role, links, share) {
  if (!study.data || !trace.customdata || role === "cells") { return trace; }
  const one = Object.assign({}, trace);
  if (study.selected !== null && onTrials.test(role) && !links.isWhole && links.x && (links.y || role === "failed")) {
    const known = new Set(trace.customdata);
    const like = trace.customdata[0];
    const more = [];
    study.selected.forEach(function (n) {
      if (!known.has(n) && isLike(n, like, role)) { more.push(n); }
    });
    spread(more, share).forEach(function (n) {
      const x = filters.position(links.x, n);
      const at = links.y ? filters.position(links.y, n) : null;
      // Without an objective it lies on the axis, as the others do.
      const y = role === "failed" && at === null ? one.y[0] : at;
      if (x === null || y === null) { return; }
      one.customdata = one.customdata.concat(n);
      one.x = one.x.concat(x);
      one.y = one.y.concat(y);
    });
  }
  if (!one.hovertext) {
    one.hovertext = one.customdata.map(function (n) { return pointed(n, links); });
  }
  if (onTrials.test(role) || role === "steps") {
    one.selectedpoints = study.selected === null ? undefined :
      one.customdata.flatMap(function (n, at) { return study.selected.has(n) ? [at] : []; });
    one.selected = { marker: { opacity: 1 } };
    one.unselected = { marker: { opacity: 0.1 } };
  }
  return one;
}

function isLike(n, other, role) {
  const state = study.state(n);
  if (role === "failed") { return state === "failed"; }
  if (state === "failed" || study.column("objective")[n] === null) { return false; }
  if (role === "trials") { return true; }
  return study.arm(n) === study.arm(other) && (state === "raced_out") === (role === "stopped");
}

function specOf(plot) {
  const spec = plot.make ? plot.make() : JSON.parse(document.getElementById(plot.dataset.figure).textContent);
  const name = plot.id.replace(/^plot-/, "");
  let changed = spec;
  changes.forEach(function (change, prefix) {
    if (name.startsWith(prefix) && study.data) { changed = change(changed, plot); }
  });
  return changed;
}

function draw(plot) {
  const palette = colours();
  const spec = specOf(plot);
  const links = spec.links || { roles: [] };
  const share = Math.ceil(mostPoints / (spec.data.length || 1));
  const data = spec.data.map(function (trace, at) {
    return followed(trace, links.roles[at], links, share);
  });
  const layout = dressed(spec.layout, "", palette);
  layout.hoverlabel = { align: "left", namelength: 0, bgcolor: palette.paper,
    bordercolor: palette.line, font: { color: palette.ink, size: 13 } };
  const canSelect = plot.onBox || links.roles.some(function (role) { return onTrials.test(role); });
  layout.dragmode = canSelect && isDragging && !isPrinting && study.data ? "select" : false;
  layout.shapes = (layout.shapes || []).concat(marked(plot, links, palette));
  if (isPrinting) {
    layout.width = Math.min(printedWidth, plot.closest(".small") ? 300 : printedWidth);
  } else if (plot.clientWidth < 420) {
    layout.font.size = 11;
    if (layout.xaxis && layout.xaxis.tickmode !== "array") { layout.xaxis.nticks = 5; }
  }
  plot.isStale = false;
  const drawn = Plotly.react(plot, dressed(data, "", palette), layout, {
    responsive: true, displaylogo: false, displayModeBar: false
  });
  if (!plot.isHeard) { hear(plot); }
  plot.links = links;
  return drawn;
}

// The box that is a condition of the selection.
function marked(plot, links, palette) {
  const box = filters.get("box " + plot.id);
  if (!box || box.x.key !== links.x || (box.y && box.y.key !== links.y)) { return []; }
  return [{ type: "rect", x0: box.x.low, x1: box.x.high,
    yref: box.y ? "y" : "paper", y0: box.y ? box.y.low : 0, y1: box.y ? box.y.high : 1,
    line: { color: palette.ink, width: 1, dash: "dot" }, layer: "below" }];
}

function hear(plot) {
  plot.isHeard = true;
  plot.on("plotly_click", function (event) {
    const point = event.points.find(function (one) { return typeof one.customdata === "number"; });
    if (point) { study.open(point.customdata); }
  });
  plot.on("plotly_selected", function (event) {
    if (!event || !event.range) { return; }
    window.setTimeout(function () { selectBox(plot, event.range); }, 0);
  });
  plot.on("plotly_deselect", function () { takeBack(plot); });
}

function takeBack(plot) {
  if (plot.onBack) { plot.onBack(); } else { filters.remove("box " + plot.id); }
}

function selectBox(plot, range) {
  Plotly.relayout(plot, { selections: [] });
  if (plot.onBox) { return plot.onBox(range); }
  const sides = ["x", "y"].map(function (side) {
    const ends = range[side].slice().sort(function (a, b) { return a - b; });
    return plot.links[side] ? filters.within(plot.links[side], ends[0], ends[1]) : null;
  });
  const [x, y] = sides;
  if (!x) { return undefined; }
  return filters.set("box " + plot.id, filters.box(x, y), plot.id);
}

// What is not seen is drawn anew when it is scrolled to.
const seen = new IntersectionObserver(function (entries) {
  entries.forEach(function (entry) {
    entry.target.isSeen = entry.isIntersecting;
    if (entry.isIntersecting && entry.target.isStale) { redraw(entry.target); }
  });
}, { rootMargin: "200px" });

// One after the other, so that the page answers at once; what changed again meanwhile is drawn once.
let isDrawing = false;

function redraw(plot) {
  if (!window.Plotly || !plot) { return; }
  plot.isStale = true;
  if (!isDrawing) {
    isDrawing = true;
    window.setTimeout(drawStale, 0);
  }
}

function drawStale() {
  const next = plots().find(function (plot) { return plot.isStale && plot.isSeen; });
  isDrawing = Boolean(next);
  if (next) {
    window.setTimeout(drawStale, 0);
    next.isStale = false;
    draw(next);
  }
}

function redrawAll() { plots().forEach(redraw); }

function drawAll() { if (window.Plotly) { plots().forEach(draw); } }

function aboutTrial(n) { return pointed(n, {}); }

// One after the other, so that a long page can be read while it is drawn.
function drawFrom(number) {
  const all = plots();
  if (number < all.length) {
    draw(all[number]);
    seen.observe(all[number]);
    window.setTimeout(drawFrom, 0, number + 1);
  } else {
    document.documentElement.dataset.figures = String(all.length);
  }
}

// Plotly stands in the page packed; the page's policy knows what comes out by its hash.
async function load() {
  const script = document.createElement("script");
  script.textContent = await unpacked("plotly");
  document.head.append(script);
}

if (document.getElementById("plotly")) {
  load().then(function () { drawFrom(0); }, function () {
    document.getElementById("undrawn").hidden = false;
  });
}

study.on("data", function () {
  saidOf.clear();
  redrawAll();
});
study.on("selection", redrawAll);

// Says whether dragging over a figure selects; a reader with a finger only turns it on for a while.
function setDragging(is) {
  isDragging = is;
  redrawAll();
}

dark.addEventListener("change", drawAll);
window.addEventListener("beforeprint", function () {
  isPrinting = true;
  document.querySelectorAll("details:not([open]):not([data-unprinted])").forEach(function (one) {
    one.open = true;
    one.dataset.closed = "";
  });
  drawAll();
});
window.addEventListener("afterprint", function () {
  isPrinting = false;
  document.querySelectorAll("details[data-closed]").forEach(function (one) {
    one.open = false;
    delete one.dataset.closed;
  });
  drawAll();
});
