// The table of indexes: each name selects the trials that asked that index, and takes them back.

study.on("data", function () {
  document.querySelectorAll("#indexes tbody th").forEach(function (cell) {
    const name = cell.textContent;
    if (cell.querySelector("button") || !study.data.indexes.includes(name)) { return; }
    const button = element("button", { type: "button", class: "plain", "aria-pressed": "false" }, name);
    button.addEventListener("click", function () {
      const isOn = button.getAttribute("aria-pressed") === "true";
      filters.change([["range index", isOn ? null : filters.among("index", [name])]], "indexes");
    });
    cell.replaceChildren(button);
  });
});

study.on("selection", function () {
  const kept = filters.get("range index");
  document.querySelectorAll("#indexes tbody th button").forEach(function (button) {
    const isOn = Boolean(kept) && kept.texts.length === 1 && kept.texts[0] === button.textContent;
    button.setAttribute("aria-pressed", String(isOn));
  });
});
