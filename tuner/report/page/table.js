// The table of the selected trials: sorted by any column, a part at a time.

const table = { key: "objective", isRising: false, page: 0, rows: [], size: 25 };

function tableColumns() {
  const texts = [["trial", null], ["arm", study.arm], ["state", stateText]];
  if (study.data.indexes.length > 1) { texts.push(["index", study.index]); }
  return texts.map(function ([key, text]) { return { key: key, name: key, text: text }; }).concat(
    study.fields.map(function (field) { return { key: field.key, name: field.name, field: field }; }));
}

function stateText(n) {
  const queries = study.data.queries[n];
  const from = study.data.shared[n];
  if (queries) { return "stopped after " + queries + " queries"; }
  return study.state(n) + (from === undefined ? "" : " from #" + from);
}

function sortTable() {
  const rows = [];
  for (let n = 0; n < study.size; n += 1) { if (study.isSelected(n)) { rows.push(n); } }
  const column = tableColumns().find(function (one) { return one.key === table.key; }) || tableColumns()[0];
  const sign = table.isRising ? 1 : -1;
  if (column.text) {
    const texts = new Map(rows.map(function (n) { return [n, column.text(n)]; }));
    rows.sort(function (a, b) { return sign * texts.get(a).localeCompare(texts.get(b)) || a - b; });
  } else if (column.field) {
    const values = study.column(column.key);
    rows.sort(function (a, b) {  // what is not known comes last, whichever way
      if (values[a] === null || values[b] === null) { return (values[a] === null) - (values[b] === null) || a - b; }
      return sign * (values[a] - values[b]) || a - b;
    });
  } else if (sign < 0) {
    rows.reverse();
  }
  table.rows = rows;
}

function mark(n) {
  if (n === study.data.chosen) { return " ★ " + study.data.called; }
  return n === study.data.baseline ? " ◆ baseline" : "";
}

function showTable() {
  const home = document.getElementById("table");
  if (!home) { return; }
  const columns = tableColumns();
  const pages = Math.max(1, Math.ceil(table.rows.length / table.size));
  table.page = Math.min(table.page, pages - 1);
  const first = table.page * table.size;
  const shown = table.rows.slice(first, first + table.size);
  const active = document.activeElement && document.activeElement.dataset.keep;
  const named = columns.find(function (one) { return one.key === table.key; }) || columns[0];
  const body = element("tbody");
  shown.forEach(function (n) {
    const open = element("button", { type: "button", "data-keep": "trial " + n, "aria-label": "Trial " + n + mark(n) },
      "#" + n);
    open.addEventListener("click", function () { study.open(n); });
    const row = element("tr", { "aria-current": n === study.opened ? "true" : null },
      element("th", { scope: "row" }, open, element("small", {}, mark(n))));
    columns.slice(1).forEach(function (column) {
      const isNumber = column.field && !column.field.choices;
      const text = column.text ? column.text(n) : study.shown(column.key, n);
      row.append(element("td", { class: isNumber ? "number" : text.length > 48 ? "long" : null }, text));
    });
    row.addEventListener("click", function (event) { if (event.target !== open) { study.open(n); } });
    body.append(row);
  });
  const heads = element("tr");
  columns.forEach(function (column) {
    const isSorted = column.key === named.key;
    const button = element("button", { type: "button", "data-keep": "sort " + column.key }, column.name,
      element("span", { "aria-hidden": "true" }, isSorted ? (table.isRising ? " ▲" : " ▼") : ""));
    button.addEventListener("click", function () {
      // The best first: the greatest, but the least of what is better low; texts from a to z.
      const isRising = column.text !== undefined && !column.field ? true : Boolean(column.field && column.field.lower);
      table.isRising = isSorted ? !table.isRising : isRising;
      table.key = column.key;
      table.page = 0;
      sortTable();
      showTable();
    });
    heads.append(element("th", { scope: "col", "aria-sort": isSorted ? (table.isRising ? "ascending" : "descending") : null,
      class: column.field && !column.field.choices ? "number" : null }, button));
  });
  const count = table.rows.length;
  home.querySelector(".caption").textContent = filters.summary().replace(/\.$/, "") + ", by " + named.name +
    (count ? ": " + (first + 1).toLocaleString("en") + " to " + (first + shown.length).toLocaleString("en") : "");
  home.querySelector("table").replaceChildren(element("thead", {}, heads), body);
  home.querySelectorAll(".pages button").forEach(function (button) {
    const to = table.page + Number(button.dataset.step);
    button.disabled = to < 0 || to >= pages;
  });
  home.querySelector(".pages").hidden = pages === 1;
  home.querySelector(".pages span").textContent = "Part " + (table.page + 1) + " of " + pages.toLocaleString("en");
  const again = active && home.querySelector("[data-keep='" + CSS.escape(active) + "']");
  if (again) { again.focus(); }
}

study.on("data", function () {
  const home = document.getElementById("explore");
  if (home && !document.getElementById("table")) {
    const pages = element("p", { class: "pages" });
    [["Previous", -1], ["Next", 1]].forEach(function ([name, step]) {
      const button = element("button", { type: "button", "data-step": step, "data-keep": "step " + step }, name);
      button.addEventListener("click", function () {
        table.page += step;
        showTable();
      });
      pages.append(button, " ");
    });
    pages.append(element("span"));
    home.append(element("div", { id: "table" }, element("p", { class: "caption", id: "table-caption" }),
      element("div", { class: "scroll", tabindex: "0", role: "region", "aria-labelledby": "table-caption" },
        element("table", { "aria-labelledby": "table-caption" })), pages));
  }
  sortTable();
  showTable();
});
study.on("selection", function () {
  table.page = 0;
  sortTable();
  showTable();
});
study.on("trial", showTable);
