(function () {
  "use strict";
  const PAGE = 20;  // so many passages are asked for together
  const KEPT = 400;  // and so many kept
  const MOST_IN_STRIP = 60;
  const LOOK_AGAIN_MS = 15000;
  const GONE = "The program that serves this page does not answer. Was it ended? Start it again, and open the " +
    "address that it prints. What was saved is on the disk.";

  const names = ["alert", "skip", "start", "naming", "naming-name", "naming-problem", "known", "people", "work", "far",
    "progress", "counted", "who", "name", "change", "switch", "query-place", "query", "passage", "passage-place",
    "state", "title", "text", "more", "opinions", "opinion-list", "grades", "previous", "undo", "open", "next",
    "said", "strip-nav", "strip", "commenting", "comment", "agreements", "help", "has-keys"];
  const ui = Object.fromEntries(names.map((name) => [name, document.getElementById(name)]));

  let me = "";
  let view = "start";  // or "grade", or "settle"
  let at = 0;  // of the passage that is shown
  let given = [];  // my grade of every passage, or null
  let starts = [];  // where each query begins
  let scale = [];
  let standing = null;
  let disputed = null;  // what is settled now: its number, of how many, and the passage
  let isBusy = false;
  let comments = Promise.resolve();  // those that are being saved
  let lookAgain = 0;
  const passages = new Map();

  // ---- what is asked of the server; every address is below that of the page, which has the token

  async function ask(name, values) {
    return answered(() => fetch(name + "?" + new URLSearchParams(values)));
  }

  async function send(name, values) {
    return answered(() => fetch(name, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(values)
    }));
  }

  async function answered(request) {
    let response;
    let text;
    try {
      response = await request();
      text = await response.text();
    } catch {
      throw new Error(GONE);
    }
    if (!response.headers.get("Content-Type").startsWith("application/json")) {
      throw new Error(text);
    }
    const answer = JSON.parse(text);
    if (!response.ok) {
      throw new Error(answer.problem);
    }
    return answer;
  }

  async function passageAt(place) {
    if (!passages.has(place)) {
      const from = place - place % PAGE;
      const found = await ask("passages", { by: me, from: from, count: PAGE });
      found.passages.forEach((one) => passages.set(one.at, one));
      while (passages.size > KEPT) {
        passages.delete(passages.keys().next().value);
      }
    }
    return passages.get(place);
  }

  // ---- words

  function meaning(grade) {
    const found = scale.find((one) => one.grade === grade);
    return found ? found.grade + ", " + found.name.toLowerCase() : "no grade";
  }

  function say(text) {
    ui.said.textContent = text;
  }

  function complain(error, isQuiet) {
    ui.alert.textContent = error.message;
    ui.alert.hidden = false;
    if (!isQuiet) { window.scrollTo(0, 0); }
  }

  function percent(share) {
    return Math.floor(share * 100 + 1e-9) + " %";
  }

  function element(kind, text, values) {
    const made = document.createElement(kind);
    made.textContent = text;
    return Object.assign(made, values);
  }

  // Pieces are texts: every second one has a term of the query in it.
  function fill(target, pieces) {
    target.replaceChildren(...pieces.map((text, number) =>
      number % 2 ? element("mark", text) : document.createTextNode(text)));
  }

  // ---- what is seen

  function show(name) {
    view = name;
    ui.start.hidden = name !== "start";
    ui.skip.hidden = name === "start";
    ui.work.hidden = name === "start";
    ui.who.hidden = name === "start";
    ui.far.hidden = name === "start";
    ui.opinions.hidden = name !== "settle";
    ui["strip-nav"].hidden = name !== "grade";
    ui.commenting.hidden = name !== "grade";
    ui.open.textContent = name === "settle" ? "Next to settle" : "Next ungraded";
    ui.grades.setAttribute("aria-label", name === "settle" ? "Grade that holds" : "Grade of this passage");
  }

  function queryOf(place) {
    let low = 0;
    let high = starts.length;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (starts[middle] <= place) { low = middle; } else { high = middle; }
    }
    return low;
  }

  function drawTexts(one) {
    ui.query.textContent = one.query;
    fill(ui.title, one.title);
    ui.title.hidden = one.title.join("") === "";
    fill(ui.text, one.passage);
    ui.more.hidden = one.left_out === 0;
    ui.more.textContent = "Show all: " + one.left_out.toLocaleString("en") + " more characters";
  }

  function drawGrade(grade) {
    ui.grades.querySelectorAll("button").forEach((button) => {
      button.setAttribute("aria-pressed", String(Number(button.dataset.grade) === grade));
    });
    ui.state.textContent = grade === null ? "" : "✓ " + meaning(grade);
  }

  function drawStrip(first, end) {
    let from = first;
    let to = end;
    if (end - first > MOST_IN_STRIP) {
      from = Math.max(first, Math.min(at - MOST_IN_STRIP / 2, end - MOST_IN_STRIP));
      to = from + MOST_IN_STRIP;
    }
    const buttons = [];
    for (let place = from; place < to; place += 1) {
      const grade = given[place];
      const button = element("button", grade === null ? "–" : String(grade), { type: "button" });
      button.className = grade === null ? "" : "graded";
      button.dataset.at = String(place);
      button.setAttribute("aria-label", "Passage " + (place - first + 1) + ": " + meaning(grade));
      if (place === at) { button.setAttribute("aria-current", "true"); }
      const item = document.createElement("li");
      item.append(button);
      buttons.push(item);
    }
    ui.strip.replaceChildren(...buttons);
  }

  function drawProgress() {
    let done = given.filter((grade) => grade !== null).length;
    let all = given.length;
    let what = " graded";
    if (view === "settle" && disputed !== null) {
      done = disputed.settled;
      all = disputed.of;
      what = " settled";
    }
    ui.progress.max = Math.max(all, 1);
    ui.progress.value = done;
    ui.counted.textContent = done.toLocaleString("en") + " of " + all.toLocaleString("en") + what;
  }

  function drawStanding() {
    const lines = standing.agreements.map((one) => {
      const who = one.first + " and " + one.second + ": ";
      const pairs = one.pairs === 1 ? "1 passage" : one.pairs.toLocaleString("en") + " passages";
      const same = percent(one.same) + " with the same grade";
      if (one.kappa === null) {
        return who + "kappa is undefined over " + pairs + ", " + same + " (" + one.why_undefined + ")";
      }
      // Rounded down, so that .7996 does not look like the .8 that it misses.
      const kappa = (Math.floor(one.kappa * 1000 + 1e-9) / 1000).toFixed(3);
      return who + "kappa " + kappa + " (quadratic weights) over " + pairs + ", " + same;
    });
    if (lines.length === 0) {
      lines.push("Kappa shows here as soon as two people have graded the same passages.");
    }
    ui.agreements.replaceChildren(...lines.map((line) => element("li", line)));
    const hasToSettle = standing.differing > 0;
    ui.switch.hidden = !hasToSettle && view !== "settle";
    ui.switch.textContent = view === "settle" ? "Back to grading" : "Settle " + standing.differing;
    ui.switch.setAttribute("aria-label", view === "settle" ? "Back to grading"
      : "Settle " + standing.differing + " passages that were graded differently");
    if (standing.problem) {
      complain(new Error(standing.problem), true);
    }
  }

  function drawPeople() {
    ui.known.hidden = standing.people.length === 0;
    ui.people.replaceChildren(...standing.people.map((one) => {
      const button = element("button", "", { type: "button" });
      button.append(element("bdi", one.name), " ",
        element("small", one.graded.toLocaleString("en") + " of " + standing.pairs.toLocaleString("en")));
      button.addEventListener("click", () => begin(one.name));
      const item = document.createElement("li");
      item.append(button);
      return item;
    }));
  }

  async function showPassage(place, isFirst) {
    const one = await passageAt(place);
    at = place;
    const query = queryOf(at);
    const first = starts[query];
    const end = query + 1 < starts.length ? starts[query + 1] : given.length;
    ui["query-place"].textContent = "Query " + (query + 1) + " of " + starts.length;
    ui["passage-place"].textContent = "Passage " + (at - first + 1) + " of " + (end - first);
    drawTexts(one);
    drawGrade(given[at]);
    drawStrip(first, end);
    drawProgress();
    ui.comment.value = one.comment;
    ui.previous.disabled = at === 0;
    ui.next.disabled = at === given.length - 1;
    ui.open.disabled = !given.includes(null);
    if (!isFirst) { toPassage(); }
    if (at + 1 < given.length) { passageAt(at + 1).catch(() => {}); }
  }

  async function showDisputed(number, isOpen, isFirst) {
    let found = await ask("disputed", isOpen ? { number: number, open: 1 } : { number: number });
    if (found.number === null && isOpen && found.settled < found.of) {
      found = await ask("disputed", { number: 0, open: 1 });
    }
    if (found.number === null && found.of > 0) {
      say("All of them are settled.");
      found = await ask("disputed", { number: found.of - 1 });
    }
    if (found.number === null) {
      await toGrading();
      say("There is nothing to settle.");
      return;
    }
    disputed = found;
    ui["query-place"].textContent = "Graded differently: " + (found.number + 1) + " of " + found.of;
    ui["passage-place"].textContent = found.grade === null ? "Not settled yet"
      : "Settled" + (found.by ? " by " + found.by : "");
    drawTexts(found);
    drawGrade(found.grade);
    drawProgress();
    ui["opinion-list"].replaceChildren(...found.opinions.map((one) => {
      const item = document.createElement("li");
      item.append(element("bdi", one.by), ": ", element("b", meaning(one.grade)));
      if (one.comment) { item.append(" ", element("q", one.comment, { dir: "auto" })); }
      return item;
    }));
    ui.previous.disabled = found.number === 0;
    ui.next.disabled = found.number === found.of - 1;
    ui.open.disabled = found.settled === found.of;
    if (!isFirst) { toPassage(); }
  }

  // Who cannot see hears the passage next; who can finds its beginning at the top.
  function toPassage() {
    ui.passage.focus({ preventScroll: true });
    window.scrollTo(0, 0);
  }

  // ---- what is done

  // One thing after the other: nothing is given to a passage that is not seen yet.
  function doing(action) {
    return async (...values) => {
      if (isBusy) { return; }
      isBusy = true;
      await comments;
      ui.work.setAttribute("aria-busy", "true");
      ui.alert.hidden = true;
      try {
        await action(...values);
      } catch (error) {
        complain(error);
      } finally {
        isBusy = false;
        ui.work.removeAttribute("aria-busy");
      }
    };
  }

  async function keep(grade) {
    const comment = ui.comment.value;
    const one = passages.get(at);
    await send("grade", { by: me, at: at, grade: grade, comment: comment });
    given[at] = grade;
    if (one) { one.comment = comment; }
    lookSoon();
  }

  async function keepComment() {
    const one = passages.get(at);
    if (view === "grade" && one && one.comment !== ui.comment.value) { await keep(given[at]); }
  }

  const grade = doing(async (value) => {
    if (view === "settle") {
      await send("settle", { by: me, at: disputed.at, grade: value });
      lookSoon();
      say("Settled: " + meaning(value) + ".");
      await showDisputed(disputed.number, true);
      return;
    }
    await keep(value);
    const left = given.filter((one) => one === null).length;
    if (left === 0) {
      say("Saved: " + meaning(value) + ". All " + given.length.toLocaleString("en") + " passages are graded: " +
        "thank you. Your sheet is beside the one that you grade.");
    } else {
      say("Saved: " + meaning(value) + ". " + left.toLocaleString("en") + " left.");
    }
    await showPassage(at + 1 < given.length ? at + 1 : left ? given.indexOf(null) : at);
  });

  const undo = doing(async () => {
    if (view === "settle") {
      const back = await send("unsettle", { by: me });
      say(back.at === null ? "There is nothing to take back." : "Taken back.");
      if (back.number !== null) { await showDisputed(back.number, false); }
      lookSoon();
      return;
    }
    const back = await send("undo", { by: me });
    if (back.at === null) {
      say("There is nothing to take back.");
      return;
    }
    given[back.at] = back.grade;
    const one = passages.get(back.at);
    if (one) { one.comment = back.comment; }
    await showPassage(back.at);
    say("Taken back: it has " + meaning(back.grade) + " now.");
    lookSoon();
  });

  const move = doing(async (steps) => {
    await keepComment();
    if (view === "settle") {
      const number = disputed.number + steps;
      if (number >= 0 && number < disputed.of) { await showDisputed(number, false); }
    } else if (at + steps >= 0 && at + steps < given.length) {
      say("");
      await showPassage(at + steps);
    }
  });

  const goTo = doing(async (place) => {
    await keepComment();
    await showPassage(place);
  });

  const toOpen = doing(async () => {
    await keepComment();
    if (view === "settle") {
      await showDisputed(disputed.number + 1, true);
      return;
    }
    const after = given.indexOf(null, at + 1);
    const place = after < 0 ? given.indexOf(null) : after;
    if (place >= 0) { await showPassage(place); } else { say("Every passage has a grade."); }
  });

  async function toGrading() {
    show("grade");
    disputed = null;
    await showPassage(at);
    drawStanding();
  }

  const changeView = doing(async () => {
    say("");
    if (view === "settle") {
      await toGrading();
    } else if (standing.differing > 0) {
      await keepComment();
      show("settle");
      await showDisputed(0, true);
      drawStanding();
    }
  });

  const showAll = doing(async () => {
    const whole = await ask("passage", { at: view === "settle" ? disputed.at : at });
    drawTexts(whole);
    ui.passage.focus({ preventScroll: true });
  });

  const begin = doing(async (name) => {
    ui["naming-problem"].textContent = "";
    let found;
    try {
      found = await ask("open", { by: name });
    } catch (error) {
      ui["naming-problem"].textContent = error.message;
      ui["naming-name"].focus();
      return;
    }
    me = found.by;
    remember(me);
    given = found.given;
    starts = found.starts;
    scale = found.scale;
    standing = found;
    passages.clear();
    ui.name.textContent = me;
    show("grade");
    drawStanding();
    await showPassage(Math.max(given.indexOf(null), 0));
    say(given.includes(null) ? "" : "Every passage has a grade.");
  });

  const toStart = doing(async () => {
    await keepComment();
    standing = await ask("standing", {});
    show("start");
    drawPeople();
    ui["naming-name"].value = "";
    ui["naming-name"].focus();
  });

  // Others grade meanwhile, perhaps the same person in another window.
  async function look() {
    window.clearTimeout(lookAgain);
    lookAgain = window.setTimeout(look, LOOK_AGAIN_MS);
    if (view === "start" || document.hidden) { return; }
    if (isBusy) {
      lookSoon();
      return;
    }
    try {
      const found = await ask("open", { by: me });
      if (isBusy || view === "start") {
        lookSoon();
        return;
      }
      standing = found;
      given = found.given;
      drawStanding();
      drawProgress();
      if (view === "grade") { drawGrade(given[at]); }
    } catch (error) {
      complain(error, true);
    }
  }

  function lookSoon() {
    window.clearTimeout(lookAgain);
    lookAgain = window.setTimeout(look, 300);
  }

  // A name holds for one window: two may sit at one machine.
  function remember(name) {
    try { window.sessionStorage.setItem("annotator", name); } catch { /* it is asked for again */ }
  }

  function remembered() {
    try { return window.sessionStorage.getItem("annotator"); } catch { return null; }
  }

  // ---- what is pressed

  const KEYS = {
    ArrowRight: () => move(1), n: () => move(1), ArrowLeft: () => move(-1), p: () => move(-1),
    u: undo, g: toOpen, s: changeView,
    c: () => { if (view === "grade") { ui.comment.focus(); } },
    "?": () => { ui.help.open = true; ui.help.querySelector("summary").focus(); }
  };

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && event.target === ui.comment) {
      ui.passage.focus();
      return;
    }
    const isWriting = event.target.matches("input:not([type=checkbox]), textarea");
    if (isWriting || event.repeat || event.ctrlKey || event.altKey || event.metaKey) { return; }
    if (view === "start" || !ui["has-keys"].checked) { return; }
    if (/^[0-9]$/.test(event.key) && scale.some((one) => one.grade === Number(event.key))) {
      event.preventDefault();
      grade(Number(event.key));
    } else if (Object.hasOwn(KEYS, event.key)) {
      event.preventDefault();
      KEYS[event.key]();
    }
  });

  ui.grades.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button) { grade(Number(button.dataset.grade)); }
  });
  ui.strip.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button) { goTo(Number(button.dataset.at)); }
  });
  ui.previous.addEventListener("click", () => move(-1));
  ui.next.addEventListener("click", () => move(1));
  ui.undo.addEventListener("click", undo);
  ui.open.addEventListener("click", toOpen);
  ui.more.addEventListener("click", showAll);
  ui.switch.addEventListener("click", changeView);
  ui.change.addEventListener("click", toStart);
  // A click that follows, such as on a grade, waits for it.
  ui.comment.addEventListener("change", () => { comments = keepComment().catch(complain); });
  ui.naming.addEventListener("submit", (event) => {
    event.preventDefault();
    begin(ui["naming-name"].value);
  });
  document.addEventListener("visibilitychange", () => { if (!document.hidden) { look(); } });

  // ---- the beginning

  ui.grades.classList.toggle("many", ui.grades.children.length > 5);
  (async () => {
    const name = remembered() || document.body.dataset.annotator;
    if (name) {
      await begin(name);
    }
    if (view === "start") {
      try {
        standing = await ask("standing", {});
        drawPeople();
      } catch (error) {
        complain(error);
      }
      show("start");
      ui["naming-name"].focus();
    }
    document.documentElement.dataset.ready = "";
    lookAgain = window.setTimeout(look, LOOK_AGAIN_MS);
  })();
})();
