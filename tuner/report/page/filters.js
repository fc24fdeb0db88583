// Which trials are selected: those for which every condition holds. A box in a figure is one
// condition, a range of a parameter another; each has a chip in the bar that takes it back.

const filters = (function () {
  const conditions = new Map();  // id -> {text, test(n)}
  let isOwn = false;

  function apply(by) {
    const numbers = [];
    if (conditions.size) {
      const all = Array.from(conditions.values());
      for (let n = 0; n < study.size; n += 1) {
        if (all.every(function (one) { return one.test(n); })) { numbers.push(n); }
      }
    }
    isOwn = true;
    study.select(conditions.size ? numbers : null, by);
    isOwn = false;
  }

  // A number on an axis: choices stand at their place, and a log scale at powers of ten.
  function position(key, n) {
    const value = study.column(key)[n];
    if (value === null || !study.field(key).isLog) { return value; }
    return value > 0 ? Math.log10(value) : null;
  }

  function withinText(key, low, high) {
    const field = study.field(key);
    if (field.choices) {
      const names = field.choices.filter(function (_, at) { return at >= low && at <= high; });
      return field.name + " " + (names.join(" or ") || "none");
    }
    const isWhole = field.kind === "integer";
    const shown = [low, high].map(function (end, at) {
      if (!Number.isFinite(end)) { return null; }
      const value = rounded(field.isLog ? Math.pow(10, end) : end);
      return plain(isWhole ? (at ? Math.floor(value) : Math.ceil(value)) : value);
    });
    if (shown[0] === null) { return field.name + " up to " + shown[1]; }
    if (shown[1] === null) { return field.name + " from " + shown[0]; }
    return field.name + " " + shown[0] + " to " + shown[1];
  }

  // Those of a field between two positions, both included.
  function within(key, low, high) {
    return {
      key: key, low: low, high: high,
      // No JSON holds an end that is not there.
      record: { key: key, low: Number.isFinite(low) ? low : null, high: Number.isFinite(high) ? high : null },
      get text() { return withinText(key, low, high); },
      test: function (n) {
        const at = position(key, n);
        return at !== null && at >= low && at <= high;
      },
    };
  }

  // Those with some of the choices of a field, by their places.
  function choices(key, places) {
    const field = study.field(key);
    const names = places.map(function (at) { return field.choices[at]; });
    const kept = new Set(places);
    return {
      key: key, places: kept, record: { key: key, places: places },
      text: field.name + " " + (names.join(" or ") || "none"),
      test: function (n) { return kept.has(study.column(key)[n]); },
    };
  }

  // Those of which a text, "arm", "state" or "index", is one of some.
  function among(name, texts) {
    return {
      texts: texts, record: { name: name, texts: texts },
      text: name + " " + (texts.join(" or ") || "none"),
      test: function (n) { return texts.includes(study[name](n)); },
    };
  }

  // Those in a box of a figure; `y` is null where only one of its axes is a field.
  function box(x, y) {
    return {
      x: x, y: y, record: { x: x.record, y: y && y.record },
      get text() { return y ? x.text + ", " + y.text : x.text; },
      test: function (n) { return x.test(n) && (!y || y.test(n)); },
    };
  }

  // Those that were picked elsewhere, one by one.
  function picked(numbers, text) {
    const own = new Set(numbers);
    return {
      record: { numbers: Array.from(own), text: text },
      text: text,
      test: function (n) { return own.has(n); },
    };
  }

  // A condition from its record, which can be kept as JSON.
  function ofRecord(record) {
    if (record.numbers) { return picked(record.numbers, record.text); }
    if (record.texts) { return among(record.name, record.texts); }
    if (record.x) { return box(ofRecord(record.x), record.y && ofRecord(record.y)); }
    if (record.places) { return choices(record.key, record.places); }
    return within(record.key, record.low === null ? -Infinity : record.low, record.high === null ? Infinity : record.high);
  }

  // Which fields a condition is of: another study may have others.
  function keysOf(record) {
    return record.x ? [record.x, record.y].flatMap(function (one) { return one ? keysOf(one) : []; }) :
      record.key ? [record.key] : [];
  }

  const bar = element("div", { id: "selection", role: "region", "aria-label": "Selected trials" });
  const said = element("p", { "aria-live": "polite", class: "said" });
  const chips = element("ul", { class: "chips" });
  const clear = element("button", { type: "button" }, "Select all trials");
  bar.append(said, chips, clear);
  bar.classList.add("empty");
  clear.addEventListener("click", function () { self.clear("bar"); });

  function summary() {
    const all = study.size.toLocaleString("en");
    if (study.selected === null) { return "All " + all + " trials are selected."; }
    return study.selected.size.toLocaleString("en") + " of " + all + " trials selected";
  }

  function show() {
    bar.classList.toggle("empty", study.selected === null);
    said.textContent = summary();
    chips.replaceChildren();
    conditions.forEach(function (condition, id) {
      const text = condition.text;
      const away = element("button", { type: "button", "aria-label": "Remove: " + text }, text, " ",
        element("span", { "aria-hidden": "true" }, "✕"));
      away.addEventListener("click", function () {
        self.remove(id);
        (chips.querySelector("button") || document.getElementById("trials") || document.body).focus();
      });
      chips.append(element("li", {}, away));
    });
  }

  const self = {
    position: position,
    within: within,
    choices: choices,
    among: among,
    box: box,
    summary: summary,
    get: function (id) { return conditions.get(id); },
    // Sets a condition, in the place of an earlier one of that id.
    set: function (id, condition, by) {
      conditions.set(id, condition);
      apply(by || id);
    },
    // Sets several at once; null takes one away.
    change: function (changes, by) {
      changes.forEach(function ([id, condition]) {
        if (condition === null) { conditions.delete(id); } else { conditions.set(id, condition); }
      });
      apply(by);
    },
    remove: function (id) {
      if (conditions.delete(id)) { apply(id); }
    },
    clear: function (by) {
      conditions.clear();
      apply(by);
    },
    // All conditions, to be kept as JSON and set again.
    get records() {
      return Array.from(conditions, function ([id, condition]) { return [id, condition.record]; });
    },
    setRecords: function (records) {
      self.change(records.filter(function ([, record]) { return keysOf(record).every(study.field); })
        .map(function ([id, record]) { return [id, ofRecord(record)]; }), "as before");
    },
  };

  study.on("selection", function (by) {
    // Selected by others, such as a list of queries: that takes the place of all conditions.
    if (!isOwn) {
      conditions.clear();
      if (study.selected !== null) { conditions.set("picked", picked(study.selected, by || "picked")); }
    }
    show();
  });
  study.on("data", function () {
    if (!bar.isConnected) { document.body.append(bar); }
    if (conditions.size) { apply("data"); } else { show(); }
  });
  return self;
})();

// As many digits as tell of a position that was dragged to.
function rounded(value) { return Number(value.toPrecision(3)); }

function plain(value) { return value.toLocaleString("en", { maximumSignificantDigits: 4 }); }
