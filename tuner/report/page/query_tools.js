// What the list of queries can be asked for: words, type, difference, part, order, and another trial.
function queryTools(queries, wish, heard) {
  const head = queries.head;
  const controls = {};

  function field(label, control) {
    return element("label", { class: "field" }, element("span", {}, label), control);
  }

  function choice(name, label, options) {
    const select = element("select", { name: name }, ...options.map(function ([value, text]) {
      return element("option", { value: value }, text);
    }));
    select.addEventListener("change", function () {
      const isAny = select.value === "" && name !== "type";
      wish[name] = isAny ? null : name === "type" ? head.types[Number(select.value)] ?? null : select.value;
      heard.changed();
    });
    controls[name] = select;
    return field(label, select);
  }

  const words = element("input", { type: "search", name: "words", autocomplete: "off", placeholder: "words or an id" });
  words.addEventListener("input", function () {
    wish.words = words.value;
    heard.changed();
  });
  const fields = [field("Search", words)];
  if (head.types.length > 1) {
    fields.push(choice("type", "Type", [["-1", "all"], ...head.types.map(function (type, at) {
      return [String(at), type || "(none)"];
    })]));
  }
  fields.push(choice("change", "Difference", Object.entries(changeFilters).map(function ([key, one]) {
    return [key, one.name];
  })));
  const parts = choice("part", "Part", [["", "all"], ["holdout", "held out"], ["tune", "used by the search"]]);
  fields.push(parts);
  fields.push(choice("order", "Order", Object.entries(queryOrders).map(function ([key, one]) {
    return [key, one.name];
  })));
  const trial = element("input", { type: "number", name: "trial", min: "0", inputmode: "numeric", placeholder: "number" });
  if (head.trials.file.length) { fields.push(field("Beside trial", trial)); }
  trial.addEventListener("change", function () {
    heard.trial(trial.value === "" ? null : Number(trial.value));
  });
  const said = element("p", { class: "note", role: "status" });
  const form = element("form", { class: "query-tools", role: "search", "aria-label": "Queries" }, ...fields, said);
  form.addEventListener("submit", function (event) { event.preventDefault(); });

  return {
    form: form,
    say: function (text) { said.textContent = text; },
    // Brings the controls to what is wished for, as when an address or a figure says it.
    show: function (number) {
      words.value = wish.words;
      if (controls.type) { controls.type.value = wish.type === null ? "-1" : String(head.types.indexOf(wish.type)); }
      controls.change.value = wish.change;
      controls.part.value = wish.part || "";
      const hasParts = new Set(queries.rows.map(function (one) { return one.isHeldOut; })).size > 1;
      parts.hidden = !hasParts;
      if (number !== undefined) {
        trial.value = number === null ? "" : String(number);
        const own = controls.order.querySelector("option[value=trial]");
        if (own) { own.remove(); }
        if (number !== null && queries.fileOf(number)) {
          controls.order.append(element("option", { value: "trial" }, "trial " + number + " worst against the baseline"));
        }
      }
      controls.order.value = wish.order;
    }
  };
}
