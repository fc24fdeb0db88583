(function () {
  "use strict";
  var palettes = JSON.parse(document.getElementById("palettes").textContent);
  var dark = window.matchMedia("(prefers-color-scheme: dark)");
  var plots = Array.prototype.slice.call(document.querySelectorAll(".plot"));
  var printedWidth = 640;
  var isPrinting = false;

  // Colours come as names; what a study's texts say is never read as one.
  function dressed(value, key, colours) {
    if (typeof value === "string") {
      return /color/i.test(key) && Object.hasOwn(colours, value) ? colours[value] : value;
    }
    if (Array.isArray(value)) {
      return value.map(function (one) { return dressed(one, key, colours); });
    }
    if (value && typeof value === "object") {
      var copy = {};
      Object.keys(value).forEach(function (name) {
        copy[name] = dressed(value[name], /colorscale/.test(key) ? key : name, colours);
      });
      return copy;
    }
    return value;
  }

  function draw(plot) {
    var colours = !isPrinting && dark.matches ? palettes.dark : palettes.light;
    var figure = JSON.parse(document.getElementById(plot.dataset.figure).textContent);
    var layout = dressed(figure.layout, "", colours);
    layout.hoverlabel = { align: "left", namelength: 0, bgcolor: colours.paper,
      bordercolor: colours.line, font: { color: colours.ink, size: 13 } };
    if (isPrinting) {
      layout.width = Math.min(printedWidth, plot.closest(".small") ? 300 : printedWidth);
    } else if (plot.clientWidth < 420) {
      layout.font.size = 11;
      if (layout.xaxis) { layout.xaxis.nticks = 5; }
    }
    return Plotly.react(plot, dressed(figure.data, "", colours), layout, {
      responsive: true, displaylogo: false, displayModeBar: false
    });
  }

  function drawAll() { if (window.Plotly) { plots.forEach(draw); } }

  // One after the other, so that a long page can be read while it is drawn.
  function drawFrom(number) {
    if (number < plots.length) {
      draw(plots[number]);
      window.setTimeout(drawFrom, 0, number + 1);
    } else {
      document.documentElement.dataset.figures = String(plots.length);
    }
  }

  // Plotly stands in the page packed; the page's policy knows what comes out by its hash.
  async function unpack() {
    var packed = atob(document.getElementById("plotly").textContent);
    var bytes = Uint8Array.from(packed, function (letter) { return letter.charCodeAt(0); });
    var stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    var script = document.createElement("script");
    script.textContent = await new Response(stream).text();
    document.head.append(script);
  }

  unpack().then(function () { drawFrom(0); }, function () {
    document.getElementById("undrawn").hidden = false;
  });

  dark.addEventListener("change", drawAll);
  window.addEventListener("beforeprint", function () {
    isPrinting = true;
    document.querySelectorAll("details:not([open])").forEach(function (one) {
      one.open = true;
      one.dataset.closed = "";
    });
    drawAll();
  });
  window.addEventListener("afterprint", function () {
    isPrinting = false;
    document.querySelectorAll("details[data-closed]").forEach(function (one) {
      one.open = false;
      delete one.dataset.closed;
    });
    drawAll();
  });
})();
