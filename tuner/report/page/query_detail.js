// One query, opened: the values, where the relevant passages stand, and both answers with texts.
const clampedText = 260;

function queryDetail(query, queries, trial) {
  const panel = element("div", { class: "query-detail" });
  const tables = element("div", { class: "query-tables" });
  if (query.relevants) { tables.append(ranksTable(query, null)); }
  tables.append(valuesTable(query, queries, trial));
  panel.append(queryFacts(query), tables);
  if (trial) { panel.append(trialLine(query, trial)); }
  const waiting = element("p", { class: "note", role: "status" }, "The passages are being read …");
  panel.append(waiting);
  const place = queries.place(query);
  filesBeside(queries.folder, place.name, queries.head.key).then(function (content) {
    waiting.remove();
    showAnswers(panel, query, queries, content, content.queries[place.at]);
  }, function () {
    waiting.textContent = "The passages of this query are in " + queries.folder + "/" + place.name +
      ".js, beside the page as the study wrote it. This copy of the page stands alone, or is of " +
      "another time: write both again with “tuner report RUN_DIR”.";
  });
  return panel;
}

function queryFacts(query) {
  const link = element("a", { href: "#query=" + encodeURIComponent(query.id) }, "Link to this query");
  const kind = query.type ? ", " + query.type : "";
  const part = query.isHeldOut ? ", held out" : ", used by the search";
  return element("p", { class: "note" }, query.id + kind + part + ". ", link);
}

// A value that is known to be none, as where nothing is relevant.
function valueText(value) { return value === null ? "no value" : numeral(value); }

// Whether a trial is the winner or the baseline, which were asked held-out queries too: their place
// among the sides; -1 for any other.
function sideOf(trial) {
  function evaluatedAs(n) { return study.data.shared[n] ?? n; }
  if (!study.data) { return -1; }
  return [study.data.chosen, study.data.baseline].findIndex(function (n) {
    return n !== null && evaluatedAs(n) === evaluatedAs(trial.number);
  });
}

// What stands beside winner and baseline in the rows of the table: the composite, then the metrics.
function besideTexts(query, queries, trial) {
  const which = sideOf(trial);
  const names = queries.head.metrics;
  if (which >= 0) {
    const side = query.sides[which];
    return [side.composite, ...side.metrics].map(valueText);
  }
  if (query.tune === null) { return ["composite", ...names].map(function () { return "not asked"; }); }
  const own = trial.keepsComposite ? valueText(trial.composite(query)) : "not kept";
  return [own, ...names.map(function () { return "–"; })];
}

function valuesTable(query, queries, trial) {
  const [winner, baseline] = query.sides;
  const beside = trial ? besideTexts(query, queries, trial) : null;
  const line = function (name, first, second, at) {
    const difference = first === null || second === null ? null : first - second;
    return [name, valueText(first), valueText(second), signedNumeral(difference), ...(beside ? [beside[at]] : [])];
  };
  const rows = [line("composite", winner.composite, baseline.composite, 0)];
  queries.head.metrics.forEach(function (name, at) {
    const pair = [winner.metrics[at], baseline.metrics[at]];
    if (pair[0] === null && pair[1] === null && !query.relevants) { return; }
    rows.push(line(name, ...pair, at + 1));
  });
  const heads = ["value", "winner", "baseline", "difference"];
  return tableOf("Values of this query", trial ? [...heads, "trial " + trial.number] : heads, rows);
}

function ranksTable(query, titles) {
  const rows = query.relevant.map(function (id, at) {
    const ranks = query.sides.map(function (side) {
      if (!side.kept) { return "not kept"; }
      return side.ranks[at] ? String(side.ranks[at]) : "not found";
    });
    const title = titles ? titles[at] : "";
    return [title ? title + " (" + id + ")" : id, ...ranks];
  });
  const table = tableOf("Rank of each relevant passage", ["relevant passage", "winner", "baseline"], rows);
  table.classList.add("query-ranks");
  return table;
}

function trialLine(query, trial) {
  const found = trial.ranks(query);
  const which = sideOf(trial);
  let text = which >= 0 ? "Trial " + trial.number + " is the " + sideNames[which] + " itself." :
    "Trial " + trial.number + " was not asked this query: it is held out.";
  if (query.tune !== null) {
    text = found === null ? "Where trial " + trial.number + " had relevant passages was not kept." :
      "Trial " + trial.number + " has relevant passages at rank " +
      ranksInWords(found.ranks, query.relevants) + ", as far as its first " + found.depth + " tell.";
  }
  return element("p", { class: "trial-line" }, text);
}

function showAnswers(panel, query, queries, content, own) {
  const passages = content.passages;
  const words = wordsOf(own.text || query.text);
  if (own.why) { panel.prepend(element("p", { class: "query-why" }, own.why)); }
  if (own.text.length > query.text.length) { panel.prepend(element("p", { class: "whole-query" }, own.text)); }
  const old = panel.querySelector(".query-ranks");
  if (old) {
    old.replaceWith(ranksTable(query, own.relevant.map(function (at) { return passages[at][1]; })));
  }
  if (own.ask) {
    panel.append(element("p", {}, "Which names and paths led there, where the system tells them:"),
      element("pre", { class: "query-ask" }, element("code", {}, own.ask)));
  }
  const both = element("div", { class: "both answers" });
  own.sides.forEach(function (lines, which) {
    const other = new Map(own.sides[1 - which].map(function (line, at) { return [line[0], at + 1]; }));
    both.append(answer(query, which, lines, other, queries, passages, words));
  });
  panel.append(both);
  const seen = new Set(own.sides.flat().map(function (line) { return line[0]; }));
  const missed = own.relevant.filter(function (at) { return !seen.has(at); });
  if (missed.length) {
    const list = element("ul", { class: "passages" }, ...missed.map(function (at) {
      return passage(passages[at], true, [], words, queries);
    }));
    panel.append(element("h4", {}, "Relevant, and in neither list"), list);
  }
}

function answer(query, which, lines, other, queries, passages, words) {
  const side = query.sides[which], name = sideNames[which];
  const title = element("h4", {}, name === "winner" ? "Winner" : "Baseline", " ",
    element("small", {}, side.composite === null ? "no composite" : "composite " + numeral(side.composite)));
  const holder = element("div", {}, title);
  if (!side.kept) {
    holder.append(element("p", { class: "note" }, "This answer was not kept; nothing is asked anew for a page."));
    return holder;
  }
  if (!lines.length) {
    holder.append(element("p", { class: "note" }, "Nothing was retrieved."));
    return holder;
  }
  const hasLegs = lines.some(function (line) { return line[3].length; });
  const list = element("ol", { class: "passages" }, ...lines.map(function (line) {
    const facts = [];
    const rank = other.get(line[0]);
    facts.push(sideNames[1 - which] + ": " + (query.sides[1 - which].kept ? rank || "not in the first " + queries.head.shown : "not kept"));
    if (line[2] !== null) { facts.push("score " + numeral(line[2])); }
    line[3].forEach(function (score, at) {
      facts.push(queries.head.legs[at] + " " + (score === null ? "not found" : numeral(score)));
    });
    return passage(passages[line[0]], Boolean(line[1]), facts, words, queries);
  }));
  holder.append(list);
  if (!hasLegs) { holder.append(element("p", { class: "note" }, "Scores by leg: not kept of this answer.")); }
  return holder;
}

function passage([id, title, text, length], isRelevant, facts, words, queries) {
  const item = element("li", { class: isRelevant ? "relevant" : null });
  const head = element("p", { class: "passage-title" }, title || id);
  if (title) { head.append(" ", element("code", {}, id)); }
  if (isRelevant) { head.append(" ", element("span", { class: "hit" }, "✓ relevant")); }
  item.append(head);
  if (facts.length) { item.append(element("p", { class: "passage-facts" }, facts.join(" · "))); }
  if (text === null) {
    item.append(element("p", { class: "passage-text none" }, "Its text was not kept."));
    return item;
  }
  const shown = element("p", { class: "passage-text" });
  const cut = text.length > clampedText ? text.slice(0, clampedText).replace(/\s+\S*$/, "") + " …" : text;
  withMarks(shown, cut, words);
  item.append(shown);
  if (text.length > clampedText) {
    const more = element("button", { type: "button", class: "more", "aria-expanded": "false" }, "Whole text");
    more.addEventListener("click", function () {
      const isOpen = more.getAttribute("aria-expanded") === "true";
      more.setAttribute("aria-expanded", String(!isOpen));
      more.textContent = isOpen ? "Whole text" : "Less";
      const left = length > text.length ? " … (" + numeral(text.length) + " of " + numeral(length) + " characters)" : "";
      withMarks(shown, isOpen ? cut : text + left, words);
    });
    item.append(more);
  }
  return item;
}

// The words of a query that say something, to be marked where a passage has them too.
function wordsOf(text) {
  const found = text.toLocaleLowerCase().match(/[\p{L}\p{N}]{4,}/gu) || [];
  return new Set(found);
}

function withMarks(place, text, words) {
  place.replaceChildren();
  text.split(/([\p{L}\p{N}]+)/u).forEach(function (part) {
    if (!part) { return; }
    place.append(words.has(part.toLocaleLowerCase()) ? element("mark", {}, part) : part);
  });
}
