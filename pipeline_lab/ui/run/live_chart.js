// A chart that is redrawn in place when its data change; the library is fetched once per page.
export default function ({ data, parentElement }) {
  const place = parentElement.querySelector(".live-chart")
  const { data: traces, layout } = JSON.parse(data.figure)
  place.setAttribute("aria-label", data.description)
  place.style.minHeight = `${data.height}px` // keeps the content below in place until the chart is drawn
  library(data.library).then((Plotly) => {
    if (place.isConnected) Plotly.react(place, traces, { ...layout, autosize: true, uirevision: "kept" }, data.config)
  })
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
