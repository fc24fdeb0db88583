// The surface of any two parameters: the best of any metric in each cell of them, of the selected
// trials. What a trial's answer tells of other values of a free parameter is in the cells too.

const surface = { x: null, y: null, value: "objective" };

function cellOf(edges, at) {
  if (at === null) { return -1; }
  for (let place = 0; place + 1 < edges.length; place += 1) {
    if (edges[place] <= at && at < edges[place + 1]) { return place; }
  }
  return at === edges[edges.length - 1] ? edges.length - 2 : -1;
}

// Trials, and settings computed from their answers, that count in the cells: {n, x, y, value}.
function surfacePoints() {
  const values = study.column(surface.value);
  const found = [];
  for (let n = 0; n < study.size; n += 1) {
    if (!study.isSelected(n) || values[n] === null || study.state(n) === "shared") { continue; }
    found.push({ n: n, x: filters.position(surface.x, n), y: filters.position(surface.y, n), value: values[n] });
  }
  if (surface.value === "objective" && !study.data.hasConstraints) {
    Object.entries(study.data.curves).forEach(function ([number, curves]) {
      const n = Number(number);
      if (!study.isSelected(n) || study.state(n) === "shared") { return; }
      Object.entries(curves).forEach(function ([key, curve]) {
        curve.at.forEach(function (at, place) {
          if (at === study.column(key)[n]) { return; }
          const placed = study.field(key).isLog ? Math.log10(at) : at;
          found.push({ n: n, value: curve.objective[place], isComputed: true,
            x: key === surface.x ? placed : filters.position(surface.x, n),
            y: key === surface.y ? placed : filters.position(surface.y, n) });
        });
      });
    });
  }
  return found;
}

// In each cell the best; what breaks a constraint is left out, unless everything does.
// Returns {rows, isAnyComputed, empty, without}: how many cells have no value, and how many of these
// were tried all the same.
function surfaceCells() {
  const edges = [study.field(surface.x).edges, study.field(surface.y).edges];
  const isLower = Boolean(study.field(surface.value).lower);
  const broken = study.column("violation");
  const all = surfacePoints();
  function isFeasible(point) { return !broken || !(broken[point.n] > 0); }
  const isAny = all.some(isFeasible);
  const rows = edges[1].slice(1).map(function () {
    return edges[0].slice(1).map(function () { return null; });
  });
  const tried = new Set();
  function placeOf(x, y) {
    const place = [cellOf(edges[1], y), cellOf(edges[0], x)];
    if (place[0] < 0 || place[1] < 0) { return null; }
    tried.add(place.join());
    return place;
  }
  all.forEach(function (point) {
    const place = placeOf(point.x, point.y);
    if (place === null || (isAny && !isFeasible(point))) { return; }
    const [row, column] = place;
    const cell = rows[row][column];
    if (!cell) {
      rows[row][column] = { count: 1, best: point };
      return;
    }
    cell.count += 1;
    const gain = (point.value - cell.best.value) * (isLower ? -1 : 1);
    if (gain > 0) { cell.best = point; }
  });
  // What has no value was tried too.
  for (let n = 0; n < study.size; n += 1) {
    if (study.isSelected(n) && study.state(n) !== "running") {
      placeOf(filters.position(surface.x, n), filters.position(surface.y, n));
    }
  }
  const empty = rows.flat().filter(function (cell) { return cell === null; }).length;
  return { rows: rows, isAnyComputed: all.some(function (point) { return point.isComputed; }), empty: empty,
    without: tried.size - (rows.flat().length - empty) };
}

function cellText(cell) {
  if (!cell) { return ""; }
  const name = study.field(surface.value).name;
  const of = cell.best.isComputed ? "computed from the answer to " : "";
  return wrapped("best of " + cell.count + " here: " + name + " " + numeral(cell.best.value) + "; " +
    of + study.about(cell.best.n));
}

// The trials as on the first drawing: dots of one kind, and crosses where they failed.
function surfaceTraces() {
  const { x, y } = surface;
  const worth = study.column("objective");
  const dots = shownTrials(mostPoints, function (n) {
    return worth[n] !== null && study.data.shared[n] === undefined && isPlaced(x, y, n);
  });
  const marker = { color: "paper", line: { color: "muted", width: 1 }, size: 5, symbol: "circle" };
  return markedTraces(dots.length ? [points("trials", dots, x, y, marker)] : [], dots.length ? ["trials"] : [], x, y);
}

changes.set("surface", function (spec, plot) {
  if (surface.x === null) { Object.assign(surface, { x: spec.links.x, y: spec.links.y, first: spec.links }); }
  const cells = surfaceCells();
  const isFirst = surface.x === surface.first.x && surface.y === surface.first.y;
  const value = study.field(surface.value);
  const made = isFirst ? null : surfaceTraces();
  const data = isFirst ? spec.data.slice() : [spec.data[0], ...made.data];
  const roles = isFirst ? spec.links.roles : ["cells", ...made.links.roles];
  data[0] = Object.assign({}, data[0], {
    x: study.field(surface.x).edges, y: study.field(surface.y).edges,
    z: cells.rows.map(function (row) { return row.map(function (cell) { return cell ? cell.best.value : null; }); }),
    hovertext: cells.rows.map(function (row) { return row.map(cellText); }),
    customdata: cells.rows.map(function (row) { return row.map(function (cell) { return cell ? cell.best.n : null; }); }),
    reversescale: Boolean(value.lower),
    colorbar: Object.assign({}, data[0].colorbar, {
      title: { text: safe((value.lower ? "least " : "best ") + value.name), side: "right" } }),
  });
  const layout = isFirst ? spec.layout : Object.assign({}, spec.layout, {
    xaxis: axisOf(surface.x, everyPosition(surface.x)), yaxis: axisOf(surface.y, everyPosition(surface.y)) });
  tellSurface(plot, value, isFirst, cells, roles.includes("failed"));
  return { data: data, layout: layout, links: { x: surface.x, y: surface.y, roles: roles,
    isWhole: !isFirst } };
});

// Says of the cells without a colour what is true: were they tried?
function emptyCells(cells, value) {
  const isAll = study.selected === null;
  const who = isAll ? "Every trial in " : "Every selected trial in ";
  const why = surface.value === "objective" ? " failed or broke a constraint" :
    " failed, broke a constraint, or has no " + value.name;
  if (!cells.empty) { return ""; }
  if (!cells.without) { return isAll ? "Empty cells were not tried. " : "Empty cells hold no selected trial. "; }
  if (cells.without === cells.empty) { return who + "an empty cell" + why + ". "; }
  const some = cells.without === 1 ? "1 of the empty cells" : cells.without + " of the empty cells";
  return who + some + why + (isAll ? "; the others were not tried. " : "; the others hold none. ");
}

function tellSurface(plot, value, isFirst, cells, isAnyFailed) {
  const own = plot.closest("figure");
  const names = study.field(surface.x).name + " and " + study.field(surface.y).name;
  const best = value.lower ? "least " : "best ";
  own.querySelector("h3").textContent = (value.lower ? "Least " : "Best ") + value.name + " over " + names;
  const caption = own.querySelector("figcaption");
  // What the server wrote, at first or anew, has the link to its figures; what is written here has not.
  if (caption.querySelector("a")) {
    plot.firstCaption = Array.from(caption.childNodes);
    plot.firstAbout = caption.querySelector("[id]").textContent;
  }
  // For those who cannot see the figure, whose description names this element.
  const about = plot.firstCaption.find(function (one) { return one.id; });
  if (isFirst && surface.value === "objective" && study.selected === null) {
    about.textContent = plot.firstAbout;
    caption.replaceChildren(...plot.firstCaption);
    return;
  }
  const whose = study.selected === null ? "" : "Of the selected trials alone. ";
  caption.replaceChildren(whose + "Each cell shows the " + best + value.name +
    " that was found in it, over all values of the other parameters; dots are trials" +
    (isAnyFailed ? ", crosses failed ones. " : ". ") +
    (cells.isAnyComputed ? "Other values of a free parameter are computed from each trial's answer. " : "") +
    emptyCells(cells, value));
  const all = cells.rows.flat().length;
  about.textContent = all - cells.empty + " of " + all + " cells have a value";
  caption.append(about);
}

study.on("data", function () {
  const plot = document.getElementById("plot-surface");
  const fields = paramFields();
  if (!plot || document.getElementById("surface-axes") || fields.length < 2) { return; }
  const links = JSON.parse(document.getElementById(plot.dataset.figure).textContent).links;
  const controls = element("div", { class: "controls", id: "surface-axes" });
  function choose(side) {
    return function (key) {
      surface[side] = key;
      const other = side === "x" ? "y" : "x";
      // The same parameter on both sides: they change places.
      if (surface.x === surface.y) {
        surface[other] = fields.find(function (field) { return field.key !== key; }).key;
        controls.querySelector("[aria-label='" + (other === "x" ? "Across" : "Up") + "']").value = surface[other];
      }
      redraw(plot);
    };
  }
  Object.assign(surface, { x: links.x, y: links.y, first: links });
  controls.append(chooser("Across", fields, links.x, choose("x")), chooser("Up", fields, links.y, choose("y")),
    chooser("Colour", metricFields(), "objective", choose("value")));
  plot.before(controls);
});
