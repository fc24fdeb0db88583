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
function surfaceCells() {
  const edges = [study.field(surface.x).edges, study.field(surface.y).edges];
  const isLower = Boolean(study.field(surface.value).lower);
  const broken = study.column("violation");
  const all = surfacePoints();
  function isFeasible(point) { return !broken || !(broken[point.n] > 0); }
  const isAny = all.some(isFeasible);
  const cells = edges[1].slice(1).map(function () {
    return edges[0].slice(1).map(function () { return null; });
  });
  all.forEach(function (point) {
    const column = cellOf(edges[0], point.x), row = cellOf(edges[1], point.y);
    if (column < 0 || row < 0 || (isAny && !isFeasible(point))) { return; }
    const cell = cells[row][column];
    if (!cell) {
      cells[row][column] = { count: 1, best: point };
      return;
    }
    cell.count += 1;
    const gain = (point.value - cell.best.value) * (isLower ? -1 : 1);
    if (gain > 0) { cell.best = point; }
  });
  return cells;
}

function cellText(cell) {
  if (!cell) { return ""; }
  const name = study.field(surface.value).name;
  const of = cell.best.isComputed ? "computed from the answer to " : "";
  return wrapped("best of " + cell.count + " here: " + name + " " + numeral(cell.best.value) + "; " +
    of + study.about(cell.best.n));
}

changes.set("surface", function (spec, plot) {
  if (surface.x === null) { Object.assign(surface, { x: spec.links.x, y: spec.links.y, first: spec.links }); }
  const cells = surfaceCells();
  const isFirst = surface.x === surface.first.x && surface.y === surface.first.y;
  const value = study.field(surface.value);
  const made = trialTraces(surface.x, surface.y, function () { return { name: "trials", place: 0 }; });
  const data = isFirst ? spec.data.slice() : [spec.data[0], ...made.data];
  const roles = isFirst ? spec.links.roles : ["cells", ...made.links.roles.map(function (role) {
    return role === "group" ? "trials" : role;
  })];
  if (!isFirst) {
    data.forEach(function (trace, at) {
      if (roles[at] === "trials") {
        trace.marker = { color: "paper", line: { color: "muted", width: 1 }, size: 5, symbol: "circle" };
      }
    });
  }
  data[0] = Object.assign({}, data[0], {
    x: study.field(surface.x).edges, y: study.field(surface.y).edges,
    z: cells.map(function (row) { return row.map(function (cell) { return cell ? cell.best.value : null; }); }),
    hovertext: cells.map(function (row) { return row.map(cellText); }),
    customdata: cells.map(function (row) { return row.map(function (cell) { return cell ? cell.best.n : null; }); }),
    reversescale: Boolean(value.lower),
    colorbar: Object.assign({}, data[0].colorbar, {
      title: { text: safe((value.lower ? "least " : "best ") + value.name), side: "right" } }),
  });
  const layout = isFirst ? spec.layout : Object.assign({}, spec.layout, {
    xaxis: axisOf(surface.x, everyPosition(surface.x)), yaxis: axisOf(surface.y, everyPosition(surface.y)) });
  tellSurface(plot, value, isFirst);
  return { data: data, layout: layout, links: { x: surface.x, y: surface.y, roles: roles,
    isWhole: !isFirst } };
});

function tellSurface(plot, value, isFirst) {
  const own = plot.closest("figure");
  const names = study.field(surface.x).name + " and " + study.field(surface.y).name;
  own.querySelector("h3").textContent = (value.lower ? "Least " : "Best ") + value.name + " over " + names;
  const caption = own.querySelector("figcaption");
  if (isFirst && surface.value === "objective" && study.selected === null) {
    if (plot.firstCaption) { caption.replaceChildren(...plot.firstCaption); }
    return;
  }
  plot.firstCaption = plot.firstCaption || Array.from(caption.childNodes);
  const about = plot.firstCaption.find(function (one) { return one.id; });
  const whose = study.selected === null ? "" : "Of the selected trials alone. ";
  caption.replaceChildren(whose + "Each cell shows the " + (value.lower ? "least " : "best ") + value.name +
    " that was found in it, over all values of the other parameters. Empty cells hold nothing. ");
  if (about) { caption.append(about); }
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
