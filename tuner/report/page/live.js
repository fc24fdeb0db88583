// A page that is served asks what is new, and takes it in without being drawn anew as a whole:
// new trials go into the study, which tells the figures; the verdict's words are put in place.
// What the server makes of all trials, it makes anew from time to time; then what changed is put in
// place. Where another part of the study's life begins, such as its end, the page is loaded again.
(function () {
  const live = document.getElementById("live");
  const askEvery = { seen: 1000, hidden: 10000, over: 5000, lost: 5000 };
  const kept = "tuner-watch";
  let stage = live.dataset.stage;
  let position = Number(live.dataset.position);
  let drawnOf = Number(live.dataset.trials);
  let lastNews = null;
  let isAsking = false;
  let isBegun = false;
  let nextTime = 0;

  // The rows of some trials, as study_data.py writes them for these alone, put into those of all.
  // Texts have other places there: they are known by what they say.
  function taken(data, rows, numbers) {
    function place(texts, text) {
      const at = texts.indexOf(text);
      return at >= 0 ? at : texts.push(text) - 1;
    }
    function placed(texts, others, at) { return at === null ? null : place(texts, others[at]); }
    rows.arms.forEach(function (arm) {
      const mine = data.arms.find(function (one) { return one.name === arm.name; });
      if (mine) { mine.place = arm.place; } else { data.arms.push(arm); }
    });
    const names = data.arms.map(function (arm) { return arm.name; });
    rows.fields.forEach(function (field) {
      let mine = data.fields.find(function (one) { return one.key === field.key; });
      if (!mine) {
        mine = { ...field };
        if (field.choices) { mine.choices = field.choices.slice(); }
        data.fields.push(mine);
        data.columns[field.key] = data.state.map(function () { return null; });
      }
    });
    numbers.forEach(function (n, row) {
      data.arm[n] = names.indexOf(rows.arms[rows.arm[row]].name);
      data.state[n] = rows.state[row];
      data.reason[n] = placed(data.reasons, rows.reasons, rows.reason[row]);
      data.index[n] = placed(data.indexes, rows.indexes, rows.index[row]);
      data.fields.forEach(function (field) {
        const column = rows.columns[field.key];
        const value = column ? column[row] : null;
        const theirs = rows.fields.find(function (one) { return one.key === field.key; });
        data.columns[field.key][n] =
          field.choices && theirs ? placed(field.choices, theirs.choices, value) : value;
      });
      ["queries", "shared", "curves"].forEach(function (name) {
        delete data[name][n];
        if (Object.hasOwn(rows[name], n)) { data[name][n] = rows[name][n]; }
      });
    });
    return { ...data, called: rows.called, chosen: rows.chosen, baseline: rows.baseline };
  }

  function say(words) {
    const place = document.getElementById("live-state");
    if (place.textContent !== words) { place.textContent = words; }
  }

  function tellAge() {
    const seconds = lastNews === null ? null : Math.round((Date.now() - lastNews) / 1000);
    const ago = seconds === null ? "" : seconds < 2 ? "Just now." :
      "Last news " + (seconds < 120 ? seconds + " s" : Math.round(seconds / 60) + " min") + " ago.";
    document.getElementById("live-news").textContent = live.classList.contains("over") ? "" : ago;
  }

  // The words of the verdict, and the figures beside it.
  function renewTop(top) {
    const verdict = document.querySelector(".verdict");
    if (!verdict) { return; }
    verdict.className = "verdict " + top.tone;
    const lines = [["outcome", null], ["sentence", top.sentence], ["caveat", top.caveat],
      ["next", top.next_step]];
    lines.forEach(function ([name, text]) {
      let line = verdict.querySelector("." + name);
      if (text === null) {
        line.replaceChildren(element("span", { class: "mark", "aria-hidden": "true" }, top.mark),
          " " + top.outcome);
      } else if (!text) {
        if (line) { line.remove(); }
      } else {
        if (!line) { verdict.append(line = element("p", { class: name })); }
        line.textContent = text;
      }
    });
    const facts = document.querySelector(".facts");
    if (facts) {
      facts.replaceChildren(...top.facts.map(function ([name, value, remark]) {
        const small = remark ? [" ", element("small", {}, remark)] : [];
        return element("div", {}, element("dt", {}, name), element("dd", {}, value, ...small));
      }));
    }
  }

  // Sections of which the server makes another text by now, figures with it.
  async function renewSections() {
    const answer = await fetch("./", { cache: "no-store" });
    if (!answer.ok) { return; }
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const theirs = page.getElementById("live");
    if (!theirs || theirs.dataset.stage !== stage) { return; }
    drawnOf = Number(theirs.dataset.trials);
    const sections = Array.from(page.querySelectorAll("main > section"));
    const pairs = sections.map(function (section) {
      return [partsOf(document.getElementById(section.id)), partsOf(section)];
    });
    // Another figure or table than before, such as the first of a section.
    if (!pairs.every(function ([old, now]) { return areAlike(old, now); })) {
      loadAgain();
      return;
    }
    pairs.forEach(function ([old, now]) { renewParts(old, now); });
    study.replace(study.data);  // what a script of the page adds to these parts
  }

  // What the server writes in a section; what the page's script makes there is left to it.
  function partsOf(section) {
    const parts = section ? section.querySelectorAll("p, table, figcaption, ul, pre, details, script, .plot") : [];
    return Array.from(parts).filter(function (part) {
      return !part.closest("#explore, #unexplored, #query-list, .controls");
    });
  }

  function areAlike(old, now) {
    return old.length === now.length && old.every(function (part, n) {
      return part.tagName === now[n].tagName && part.id === now[n].id;
    });
  }

  function renewParts(old, now) {
    const changed = new Set();
    old.forEach(function (part, n) {
      if (part.matches(".plot") || part.innerHTML === now[n].innerHTML) { return; }
      if (part.tagName === "SCRIPT") { changed.add(part.id); }
      part.innerHTML = now[n].innerHTML;
    });
    plots().forEach(function (plot) {
      if (changed.has(plot.dataset.figure)) { redraw(plot); }
    });
  }

  function loadAgain() {
    const open = Array.from(document.querySelectorAll("details[open][id]"), function (one) { return one.id; });
    sessionStorage.setItem(kept, JSON.stringify({
      at: location.pathname, y: window.scrollY, filters: filters.records, opened: study.opened, open: open }));
    location.reload();
  }

  function restore() {
    const text = sessionStorage.getItem(kept);
    sessionStorage.removeItem(kept);
    const before = text === null ? null : JSON.parse(text);
    if (!before || before.at !== location.pathname) { return; }
    let isBack = false;
    study.on("data", function () {
      if (isBack) { return; }
      isBack = true;
      if (before.filters.length) { filters.setRecords(before.filters); }
      if (before.opened !== null) { study.open(before.opened); }
    });
    window.scrollTo(0, before.y);
  }

  async function ask() {
    const answer = await fetch("new?stage=" + encodeURIComponent(stage) + "&since=" + position + "&drawn=" + drawnOf,
      { cache: "no-store" });
    const news = await answer.json();
    if (!answer.ok) { throw new Error(news.problem); }
    if (news.stage !== stage || news.position < position) {
      loadAgain();
      return;
    }
    live.classList.remove("lost");
    live.classList.toggle("over", news.state.is_over);
    say(news.state.said);
    if (news.numbers && !document.getElementById("study")) {
      loadAgain();  // the first trial
      return;
    }
    if (news.numbers) {
      position = news.position;
      lastNews = Date.now();
      study.replace(taken(study.data, news.study, news.numbers));
      renewTop(news.headline);
      live.dataset.position = String(position);
    }
    if (news.is_grown) { await renewSections(); }
  }

  async function keepAsking() {
    if (isAsking) { return; }
    isAsking = true;
    window.clearTimeout(nextTime);
    let wait = document.hidden ? askEvery.hidden : askEvery.seen;
    try {
      await ask();
      if (live.classList.contains("over")) { wait = askEvery.over; }
    } catch (error) {
      live.classList.add("lost");
      say(error instanceof TypeError ? "The watcher does not answer; this page shows what it knew last." :
        "The study cannot be read now: " + error.message);
      wait = askEvery.lost;
    }
    isAsking = false;
    tellAge();
    nextTime = window.setTimeout(keepAsking, wait);
  }

  restore();
  document.addEventListener("visibilitychange", function () {
    if (!document.hidden) { keepAsking(); }
  });
  window.setInterval(tellAge, 1000);
  // The study in the page is unpacked first: what is new goes on top of it.
  if (document.getElementById("study")) {
    study.on("data", function () {
      if (!isBegun) { isBegun = true; keepAsking(); }
    });
  } else {
    keepAsking();
  }
})();
