// A chart that is drawn once, and again in place when its data or its width change; the library is fetched once per page.
const AGAIN_MS = 2000 // until a library that did not come is asked for again
const LIGHT = new RegExp(Object.keys(DARK).map((color) => color.replace(/[().]/g, "\\$&")).join("|"), "g")

export default function ({ data, parentElement, setTriggerValue }) {
  const place = parentElement.querySelector(".lab-chart")
  place.setAttribute("aria-label", data.description)
  place.style.minHeight = `${data.height}px` // keeps the content below in place until the chart is drawn
  place.tell = (mark) => setTriggerValue("clicked", mark)
  if (place.shown === data.figure) return
  place.shown = data.figure
  const isWanted = () => place.isConnected && place.shown === data.figure
  const draw = (Plotly) => {
    if (!isWanted()) return
    const isNew = !place.on
    place.draw = () => draw(Plotly)
    const figure = isDark(place) ? data.figure.replace(LIGHT, (color) => DARK[color]) : data.figure
    const { data: traces, layout } = JSON.parse(figure)
    Plotly.react(place, traces, { ...layout, autosize: true, uirevision: "kept" }, data.config)
    if (isNew) follow(Plotly, place)
  }
  const wait = () => setTimeout(() => isWanted() && ask(), AGAIN_MS)
  const ask = () => library(data.library).then(draw, wait)
  ask()
}

// Keeps to the width and the theme of the page, and tells which mark is clicked.
function follow(Plotly, place) {
  let waiting = 0
  new ResizeObserver(() => {
    clearTimeout(waiting)
    waiting = setTimeout(() => {
      const width = place.clientWidth
      if (width && Math.abs(width - place.clientDrawn) >= 1) Plotly.relayout(place, { width })
      place.clientDrawn = width || place.clientDrawn
    }, 100)
  }).observe(place)
  place.clientDrawn = place.clientWidth
  onThemeChange(place, () => place.draw())
  place.on("plotly_click", ({ points: [mark] }) => place.tell([mark.curveNumber, mark.pointIndex ?? mark.pointNumber]))
}

function library(url) {
  window.pipelineLabPlotly ??= new Promise((resolve, reject) => {
    const script = document.createElement("script")
    const failed = () => {
      window.pipelineLabPlotly = null // the next chart tries again
      reject(new Error(`${url} did not come.`))
    }
    Object.assign(script, { src: url, onload: () => resolve(window.Plotly), onerror: failed })
    document.head.append(script)
  })
  return window.pipelineLabPlotly
}
