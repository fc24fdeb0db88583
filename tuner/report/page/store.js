// The study as all figures, tables and panels of the page see it. This file comes first; the others
// (SCRIPTS in page_view.py) follow in one function, so that each sees what those before it declare.
//
// The page holds the study packed in <script id="study">: what `study_data.py` returns. Of it:
//   study.data            as study_data.py wrote it; null until the first "data"
//   study.size            how many trials; row n of every column is trial n
//   study.fields          what is known of each trial: {key, name, group, kind, …}, in a stable order
//   study.field(key)      one of them, such as "objective", "param:max_hops", "metric:recall@10"
//   study.column(key)     its values by trial: a number, the place of a choice, or null
//   study.shown(key, n)   the value of trial n, for people
//   study.arm(n), study.state(n), study.reason(n), study.index(n)   texts; "" where there is none
//   study.about(n)        trial n in a line
// What the reader does:
//   study.selected        the numbers of the selected trials, a Set; null where all are
//   study.isSelected(n)
//   study.select(numbers, by)   an iterable or null; `by` says where: "slice-top_k", "table", …
//   study.opened          the trial whose panel is open, or null
//   study.open(n)         opens it; null closes it
//   study.replace(data)   new trials, as a live page gets them: keeps what is selected and opened
//   study.on(what, fn)    "data": the study is there, or has changed; at once where it is there.
//                         "selection": fn(by). "trial": another trial was opened, or none.
// A text of a study is hostile: it goes into the page by `textContent`, into plotly by `safe`.

function makeStudy() {
  const listeners = { data: [], selection: [], trial: [] };
  const byKey = new Map();

  function tell(what, value) {
    listeners[what].forEach(function (listener) { listener(value); });
  }

  const study = {
    data: null,
    selected: null,
    opened: null,
    get size() { return study.data ? study.data.state.length : 0; },
    get fields() { return study.data ? study.data.fields : []; },
    field: function (key) { return byKey.get(key); },
    column: function (key) { return study.data.columns[key]; },
    arm: function (n) { return study.data.arms[study.data.arm[n]].name; },
    state: function (n) { return study.data.states[study.data.state[n]]; },
    reason: function (n) {
      const at = study.data.reason[n];
      return at === null ? "" : study.data.reasons[at];
    },
    index: function (n) {
      const at = study.data.index[n];
      return at === null ? "" : study.data.indexes[at];
    },
    shown: function (key, n) {
      const value = study.column(key)[n];
      if (value === null) { return "–"; }
      const field = byKey.get(key);
      return field.choices ? field.choices[value] : numeral(value);
    },
    about: function (n) {
      const params = study.fields.filter(function (one) {
        return one.key.startsWith("param:") && study.column(one.key)[n] !== null;
      }).map(function (one) { return one.name + " " + study.shown(one.key, n); });
      const queries = study.data.queries[n];
      const result = study.state(n) === "failed" ? " failed: " + study.reason(n) :
        ": " + study.shown("objective", n) +
        (queries ? " (estimate after " + queries + " queries)" : "");
      return study.arm(n) + " #" + n + result + "; " + params.join(", ");
    },
    isSelected: function (n) { return study.selected === null || study.selected.has(n); },
    select: function (numbers, by) {
      study.selected = numbers === null ? null : new Set(numbers);
      tell("selection", by);
    },
    open: function (n) {
      study.opened = n;
      tell("trial", n);
    },
    replace: function (data) {
      study.data = data;
      byKey.clear();
      data.fields.forEach(function (field) { byKey.set(field.key, field); });
      tell("data");
    },
    on: function (what, listener) {
      listeners[what].push(listener);
      if (what === "data" && study.data) { listener(); }
    },
  };
  return study;
}

// A number as the page writes it: four digits that tell, and no more.
function numeral(value) {
  if (value === null || value === undefined) { return "–"; }
  if (Number.isInteger(value)) { return value.toLocaleString("en"); }
  const size = Math.abs(value);
  const decimals = size >= 1000 ? 0 : size >= 10 ? 1 : size > 1 ? 2 : size >= 0.001 ? 4 : 6;
  return value.toLocaleString("en", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
}

// A difference, with its sign; the same values may be added up in another order.
const sameChange = 1e-9;
function signedNumeral(value) {
  if (value === null) { return "–"; }
  if (Math.abs(value) <= sameChange) { return "0"; }
  return (value < 0 ? "−" : "+") + numeral(Math.abs(value));
}

// Plotly reads a few tags in texts, and shows entities as such.
function safe(text) {
  return String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
}

// What stands in the page packed: <script type="application/gzip" id="…">, in base64.
async function unpacked(id) {
  const packed = atob(document.getElementById(id).textContent);
  const bytes = Uint8Array.from(packed, function (letter) { return letter.charCodeAt(0); });
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

// An element with its attributes and what is in it; texts are texts.
function element(name, attributes, ...inside) {
  const made = document.createElement(name);
  Object.entries(attributes || {}).forEach(function ([key, value]) {
    if (value !== null && value !== undefined && value !== false) {
      made.setAttribute(key, value === true ? "" : value);
    }
  });
  made.append(...inside);
  return made;
}

// A table that scrolls by itself: the first cell of a row is its head, all others are figures.
function tableOf(caption, heads, rows) {
  const head = element("tr", {}, ...heads.map(function (name, at) {
    return element("th", { scope: "col", class: at ? "number" : null }, name);
  }));
  const body = rows.map(function ([name, ...cells]) {
    return element("tr", {}, element("th", { scope: "row" }, name), ...cells.map(function (text) {
      return element("td", { class: text.length > 12 ? "number text" : "number" }, text);
    }));
  });
  return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    element("table", { "aria-label": caption }, element("thead", {}, head), element("tbody", {}, ...body)));
}

const study = makeStudy();
window.study = study;
if (document.getElementById("study")) {
  unpacked("study").then(function (text) { study.replace(JSON.parse(text)); }, function () {});
}
