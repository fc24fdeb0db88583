// The list of all queries: what the reader asks for, pages of it, and the keys that move in it.
const queriesAPage = 20;

function startQueryList(holder, head) {
  const queries = makeQueries(head);
  queries.folder = holder.dataset.folder;
  head.blocks.forEach(queries.add);
  const wish = { words: "", type: null, change: "all", part: null, order: "changed" };
  let trial = null, found = [], page = 0;
  const opened = new Set();

  const status = element("p", { class: "query-status", role: "status" });
  const rows = element("ol", { class: "query-rows" });
  const pages = element("nav", { class: "query-pages", "aria-label": "Pages of queries" });
  const missing = element("p", { class: "note", hidden: true });
  const tools = queryTools(queries, wish, { changed: function () { show(0); }, trial: besideTrial });
  holder.append(tools.form, status, missing, rows, pages);

  function show(number) {
    found = chosenQueries(queries, wish, trial);
    const last = Math.max(0, Math.ceil(found.length / queriesAPage) - 1);
    page = Math.min(Math.max(number, 0), last);
    const begin = page * queriesAPage;
    rows.start = begin + 1;
    rows.replaceChildren(...found.slice(begin, begin + queriesAPage).map(queryRow));
    const where = last ? "; page " + (page + 1) + " of " + (last + 1) : "";
    status.textContent = numeral(found.length) + " of " + numeral(queries.rows.length) + " queries" + where;
    const turn = function (text, to) {
      const isThere = to >= 0 && to <= last;
      const button = element("button", { type: "button", disabled: !isThere }, text);
      button.addEventListener("click", function () { show(to); focusRow(0); });
      return button;
    };
    pages.hidden = !last;
    pages.replaceChildren(turn("Previous", page - 1), turn("Next", page + 1));
  }

  function queryRow(query) {
    const id = "query-" + query.number;
    const facts = [query.id, query.type, query.isHeldOut ? "held out" : "search"].filter(Boolean);
    const relevant = query.relevants ? "; relevant at: " + query.sides.map(function (side, at) {
      return sideNames[at] + " " + ranksInWords(side.ranks, query.relevants);
    }).join(" · ") : "; nothing is relevant";
    const told = trial ? trial.ranks(query) : null;
    const beside = told ? " · trial " + trial.number + " " + ranksInWords(told.ranks, query.relevants) : "";
    const button = element("button", { type: "button", class: "query", "aria-expanded": "false", "aria-controls": id },
      element("b", {}, query.change === null ? "no value" : signedNumeral(query.change)),
      element("span", {}, query.text || query.id),
      element("small", {}, facts.join(", ") + relevant + beside));
    const item = element("li", {}, button);
    button.addEventListener("click", function () {
      if (opened.has(query.number)) { close(query, item); } else { open(query, item); name(query); }
    });
    if (opened.has(query.number)) { open(query, item); }
    return item;
  }

  function open(query, item) {
    opened.add(query.number);
    const button = item.querySelector("button.query");
    button.setAttribute("aria-expanded", "true");
    const panel = queryDetail(query, queries, trial);
    panel.id = button.getAttribute("aria-controls");
    item.append(panel);
  }

  function close(query, item) {
    opened.delete(query.number);
    item.querySelector("button.query").setAttribute("aria-expanded", "false");
    item.querySelector(".query-detail").remove();
  }

  // The address names what was opened last, so that it can be handed on.
  function name(query) {
    try { history.replaceState(null, "", "#query=" + encodeURIComponent(query.id)); } catch (_) { /* within another page */ }
  }

  function focusRow(at) {
    const button = rows.querySelectorAll("button.query")[at];
    if (button) { button.focus(); button.scrollIntoView({ block: "nearest" }); }
  }

  function goTo(query) {
    Object.assign(wish, { words: "", type: null, change: "all", part: null });
    tools.show();
    opened.add(query.number);
    found = chosenQueries(queries, wish, trial);
    const place = found.indexOf(query);
    show(Math.floor(place / queriesAPage));
    focusRow(place % queriesAPage);
    rows.children[place % queriesAPage].scrollIntoView({ block: "start" });
  }

  function followAddress() {
    const match = /^#query=(.*)$/.exec(location.hash);
    if (!match) { return; }
    let id = match[1];
    try { id = decodeURIComponent(id); } catch (_) { /* a broken address names nothing */ }
    const query = queries.byId(id);
    missing.hidden = Boolean(query);
    missing.textContent = query ? "" : "There is no query “" + id + "” in this report.";
    if (query) { goTo(query); } else { holder.scrollIntoView(); }
  }

  // Shows where another trial has what is relevant, beside winner and baseline.
  function besideTrial(number) {
    const file = number === null ? null : queries.fileOf(number);
    if (file === null) {
      trial = null;
      tools.say(number === null ? "" : "What trial " + number + " answered was not kept.");
      if (wish.order === "trial") { wish.order = "changed"; }
      tools.show(number);
      show(page);
      return;
    }
    filesBeside(queries.folder, file, head.key).then(function (content) {
      trial = trialBeside(number, content);
      tools.say("Trial " + number + " is shown on the queries that the search used.");
      tools.show(number);
      show(page);
    }, function () {
      tools.say("The ranks of trial " + number + " are in " + queries.folder + "/" + file + ".js, which is not beside this page.");
      tools.show(number);
    });
  }

  rows.addEventListener("keydown", function (event) {
    if (event.ctrlKey || event.metaKey || event.altKey) { return; }
    const buttons = Array.from(rows.querySelectorAll("button.query"));
    const item = event.target.closest(".query-rows > li");
    const at = Array.from(rows.children).indexOf(item);
    const isOnRow = event.target === buttons[at];
    const step = { j: 1, k: -1, ArrowDown: isOnRow ? 1 : 0, ArrowUp: isOnRow ? -1 : 0 }[event.key];
    if (event.key === "Escape" && item.querySelector(".query-detail")) {
      close(found[page * queriesAPage + at], item);
      buttons[at].focus();
      event.stopPropagation();
    } else if (step) {
      const next = page * queriesAPage + at + step;
      if (next >= 0 && next < found.length) {
        if (Math.floor(next / queriesAPage) !== page) { show(Math.floor(next / queriesAPage)); }
        focusRow(next % queriesAPage);
      }
    } else { return; }
    event.preventDefault();
  });

  // The blocks of the index that are too many for the page, one after the other.
  async function addBlocks() {
    const blocks = Math.ceil(head.count / head.block);
    for (let number = head.blocks.length; number < blocks; number += 1) {
      queries.add(await filesBeside(queries.folder, "index-" + fileNumber(number), head.key));
    }
    tools.show();
    show(page);
  }

  show(0);
  holder.dataset.ready = String(queries.rows.length);
  study.on("trial", function (number) { besideTrial(number); });
  addBlocks().catch(function () {
    missing.hidden = false;
    missing.textContent = "This page alone holds the " + numeral(queries.rows.length) + " queries that changed most, of " +
      numeral(head.count) + "; the others are in " + queries.folder + ", which is not beside it.";
    return null;
  }).then(function () {
    holder.dataset.ready = String(queries.rows.length);
    followAddress();
    window.addEventListener("hashchange", followAddress);
  });
}

const queryHolder = document.getElementById("query-list");
if (queryHolder) {
  unpacked("query-index").then(function (text) { startQueryList(queryHolder, JSON.parse(text)); }, function () {
    queryHolder.textContent = "This browser is too old for the list of all queries; figures/queries.csv has their values.";
  });
}
