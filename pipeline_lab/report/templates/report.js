"use strict";
(() => {
  const PRINT_WIDTH = 690;
  const CONFIG = { displayModeBar: false, displaylogo: false, responsive: false, doubleClick: "reset" };
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const paper = window.matchMedia("print");
  const charts = [...document.querySelectorAll(".chart")].map((element) => {
    const source = element.querySelector("script");
    const { figure, dark: patch } = JSON.parse(source.textContent);
    source.remove();
    return { element, figure, patch, drawn: false };
  });
  let printing = false;

  function colored({ figure, patch }, isDark) {
    const copy = structuredClone(figure);
    for (const [path, value] of isDark ? patch : []) {
      const last = path[path.length - 1];
      path.slice(0, -1).reduce((place, key) => place[key], copy)[last] = value;
    }
    return copy;
  }

  function draw(chart) {
    const { data, layout } = colored(chart, dark.matches && !printing);
    layout.width = printing ? PRINT_WIDTH : chart.element.clientWidth;
    layout.autosize = false;
    chart.drawn = true;
    return Plotly.react(chart.element, data, layout, CONFIG);
  }

  function drawAll() {
    charts.forEach(draw);
  }

  function drawWhenIdle() {
    const next = charts.find((chart) => !chart.drawn);
    if (next) {
      draw(next);
      setTimeout(drawWhenIdle, 0);
    } else {
      document.documentElement.dataset.charts = "drawn";
    }
  }

  function startPrinting() {
    if (printing) return;
    printing = true;
    document.querySelectorAll("details:not([open])").forEach((element) => {
      element.open = true;
      element.dataset.folded = "";
    });
    drawAll();
  }

  function stopPrinting() {
    if (!printing) return;
    printing = false;
    document.querySelectorAll("details[data-folded]").forEach((element) => {
      element.open = false;
      delete element.dataset.folded;
    });
    drawAll();
  }

  let width = window.innerWidth;
  let pending = 0;
  window.addEventListener("resize", () => {
    if (printing || window.innerWidth === width) return;
    width = window.innerWidth;
    clearTimeout(pending);
    pending = setTimeout(drawAll, 150);
  });
  window.addEventListener("beforeprint", startPrinting);
  window.addEventListener("afterprint", stopPrinting);
  paper.addEventListener("change", () => (paper.matches ? startPrinting() : stopPrinting()));
  dark.addEventListener("change", drawAll);

  document.querySelectorAll(".save").forEach((element) => {
    element.hidden = false;
    element.addEventListener("click", ({ target }) => {
      const format = target.dataset.kind;
      const chart = document.getElementById(element.dataset.chart);
      if (!format) return;
      const { clientWidth: imageWidth, clientHeight: height } = chart;
      const filename = element.dataset.chart.replace("chart-", "");
      Plotly.downloadImage(chart, { format, filename, width: imageWidth, height, scale: 2 });
    });
  });

  drawWhenIdle();
})();
