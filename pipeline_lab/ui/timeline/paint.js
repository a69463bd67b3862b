// How the timeline looks: the axis, one band per row, labels. `view` is the Timeline whose state is painted.
const LEVELS = 7

function paintTimeline(view) {
  const { canvas, width, visible } = view, ratio = window.devicePixelRatio || 1
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(visible * ratio)) {
    canvas.width = Math.round(width * ratio)
    canvas.height = Math.round(visible * ratio)
    canvas.style.width = `${width}px`
    canvas.style.height = `${visible}px`
  }
  const style = getComputedStyle(view.root), pen = canvas.getContext("2d")
  const look = { ink: style.color, paper: style.getPropertyValue("--st-background-color"), line: style.getPropertyValue("--st-border-color"),
    accent: style.getPropertyValue("--st-link-color"), font: style.fontFamily, names: view.names, colors: view.colors,
    inks: (view.inks ??= {}) }
  pen.setTransform(ratio, 0, 0, ratio, 0, 0)
  pen.fillStyle = look.paper
  pen.fillRect(0, 0, width, visible)
  pen.textBaseline = "middle"
  const top = view.scroller.scrollTop
  paintTicks(pen, view, look)
  for (const lane of view.lanes) {
    if (lane.top + LABEL > top && lane.top < top + visible) paintLabel(pen, lane, lane.top - top, view, look)
  }
  view.rows.forEach((row, number) => {
    const y = row.top - top
    if (y + ROW < 0 || y > visible) return
    const content = view.tile?.rows.get(`${row.lane.lane}.${row.layer}`)
    if (content) paintRow(pen, content, y, view, look)
    if (number === view.cursor) {
      pen.fillStyle = look.accent
      pen.fillRect(0, y, 3, ROW - 2)
    }
  })
  paintChosen(pen, view, look, top)
  paintAxis(pen, view, look)
}

function paintLabel(pen, lane, y, view, look) {
  pen.font = `600 11px ${look.font}`
  pen.fillStyle = look.ink
  const more = lane.more > 0 ? `   ▸ ${lane.more} deeper levels` : lane.layers > FEW_LAYERS ? "   ▾ fewer levels" : ""
  pen.fillText(fit(pen, laneTitle(lane) + more, view.width - 12), 6, y + LABEL / 2 + 1)
}

function paintRow(pen, content, y, view, look) {
  const scale = view.width / (view.end - view.start), { tile } = view
  if (content.events) {
    for (let i = 0; i < content.events.length; i += 4) {
      const start = content.events[i] + tile.start, length = content.events[i + 1]
      const left = Math.max(-2, (start - view.start) * scale)
      const right = Math.min(view.width + 2, (start + length - view.start) * scale)
      if (right < -1 || left > view.width + 1) continue
      paintEvent(pen, left, Math.max(1, right - left), y, content.events[i + 2], content.events[i + 3], look)
    }
  } else {
    const pixel = ((tile.end - tile.start) / tile.width) * scale, shift = (tile.start - view.start) * scale
    const cells = content.cells
    for (let from = 0, to = 0; from < cells.length; from = to) {
      for (to = from + 1; to < cells.length && cells[to] === cells[from];) to++
      const level = cells[from] & LEVELS
      if (!level) continue
      pen.globalAlpha = 0.25 + (0.75 * level) / LEVELS
      pen.fillStyle = look.colors[cells[from] >> 3]
      pen.fillRect(shift + from * pixel, y, (to - from) * pixel, ROW - 2)
    }
    pen.globalAlpha = 1
  }
  if (content.marks) {
    const pixel = ((tile.end - tile.start) / tile.width) * scale, shift = (tile.start - view.start) * scale
    pen.fillStyle = look.ink
    for (const mark of content.marks) pen.fillRect(shift + mark * pixel - 0.5, y - 2, 2, ROW + 2)
  }
}

function paintEvent(pen, x, width, y, name, kind, look) {
  pen.fillStyle = look.colors[kind]
  pen.fillRect(x, y, width > 3 ? width - 0.5 : width, ROW - 2)
  if (width < 26) return
  pen.font = `11px ${look.font}`
  pen.fillStyle = look.inks[look.colors[kind]] ??= inkOn(look.colors[kind])
  const left = Math.max(0, x)
  pen.fillText(fit(pen, look.names[name] ?? "", x + width - left - 6), left + 3, y + (ROW - 2) / 2 + 0.5)
}

function paintChosen(pen, view, look, top) {
  if (!view.chosen) return
  const row = view.rows.find(({ lane, layer }) => lane.lane === view.chosen.lane && layer === view.chosen.layer)
  const from = view.xOf(view.chosen.start), to = view.xOf(view.chosen.end)
  if (to < 0 || from > view.width) return
  pen.globalAlpha = 0.1
  pen.fillStyle = look.accent
  pen.fillRect(Math.max(0, from), AXIS, Math.max(1, Math.min(to, view.width) - Math.max(0, from)), view.visible)
  pen.globalAlpha = 1
  if (!row) return
  pen.strokeStyle = look.ink
  pen.lineWidth = 2
  pen.strokeRect(Math.max(-3, from), row.top - top - 1, Math.max(3, Math.min(to, view.width + 3) - Math.max(-3, from)), ROW)
}

function ticks(view) {
  const rough = ((view.end - view.start) / view.width) * 110
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = Math.max(1, [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough))
  const found = []
  for (let at = Math.ceil(view.start / step) * step; at <= view.end; at += step) found.push(at)
  return { step, found }
}

function paintTicks(pen, view, look) {
  pen.fillStyle = look.line
  for (const at of ticks(view).found) pen.fillRect(Math.round(view.xOf(at)), AXIS, 1, view.visible)
}

function paintAxis(pen, view, look) {
  pen.fillStyle = look.paper
  pen.fillRect(0, 0, view.width, AXIS)
  pen.fillStyle = look.line
  pen.fillRect(0, AXIS - 1, view.width, 1)
  pen.fillStyle = look.ink
  pen.font = `11px ${look.font}`
  const { step, found } = ticks(view)
  for (const at of found) {
    const x = view.xOf(at), text = moment(at, step)
    pen.fillText(text, Math.min(Math.max(2, x - pen.measureText(text).width / 2), view.width - pen.measureText(text).width - 2), AXIS / 2)
  }
}

function tipText(content, view, x) {
  const time = view.timeAt(x), near = (2 / view.width) * (view.end - view.start)
  if (content.events) {
    for (let i = 0; i < content.events.length; i += 4) {
      const start = content.events[i] + view.tile.start, length = content.events[i + 1]
      if (time >= start - near && time <= start + length + near) {
        return `${view.names[content.events[i + 2]] ?? ""} · ${duration(length)} · ${view.data.classes[content.events[i + 3]].title}`
      }
    }
    return ""
  }
  const cell = content.cells[Math.floor(((time - view.tile.start) / (view.tile.end - view.tile.start)) * content.cells.length)]
  if (!cell || !(cell & LEVELS)) return ""
  return `Mostly ${view.data.classes[cell >> 3].title}, about ${Math.round((100 * (cell & LEVELS)) / LEVELS)} % of this pixel; zoom in to see single events`
}

const laneTitle = (lane) => {
  const name = lane.kind === "device" ? `${lane.label}: busy and idle by cause` : lane.label.replace(/\/-?\d{6,}$/, "")
  const role = { training: " (training thread)", waits: " (waits for input)" }[lane.role] ?? ""
  return `${name}${role}${lane.host ? `  ·  ${lane.host}` : ""}`
}

const ready = (row) => row.cells ? { ...row, cells: Uint8Array.from(atob(row.cells), (letter) => letter.charCodeAt(0)) } : row

const fit = (pen, text, room) => {
  if (room < 12) return ""
  if (pen.measureText(text).width <= room) return text
  let length = Math.floor((text.length * room) / pen.measureText(text).width)
  while (length > 1 && pen.measureText(`${text.slice(0, length)}…`).width > room) length--
  return length > 1 ? `${text.slice(0, length)}…` : ""
}

const inkOn = (color) => {
  const [red, green, blue] = [1, 3, 5].map((at) => {
    const part = parseInt(color.slice(at, at + 2), 16) / 255
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.2 ? "#10151c" : "#ffffff"
}

const UNITS = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]]

const duration = (ns) => {
  const [size, unit] = UNITS.find(([one]) => Math.abs(ns) >= one) ?? [1, "ns"]
  return `${+(ns / size).toPrecision(Math.abs(ns / size) >= 100 ? Math.ceil(Math.log10(Math.abs(ns / size) + 1)) : 3)} ${unit}`
}

// A moment on the axis, with as many digits as the distance of its marks needs.
const moment = (ns, step) => {
  const [size, unit] = UNITS.find(([one]) => Math.abs(ns) >= one) ?? [1, "ns"]
  return `${(ns / size).toFixed(Math.max(0, Math.ceil(Math.log10(size / step) - 1e-9)))} ${unit}`
}

const element = (tag, text = "", className = "") => {
  const made = document.createElement(tag)
  if (text) made.textContent = text
  if (className) made.className = className
  return made
}

function operations(rows) {
  const table = element("table")
  table.append(element("caption", "Host operations in this time range, by their own time"))
  const head = element("tr")
  for (const [text, kind] of [["Operation", ""], ["Thread with most of it", "thread"], ["Time", "number"], ["Share", "number"], ["Calls", "number"]]) {
    const cell = element("th", text, kind)
    cell.scope = "col"
    head.append(cell)
  }
  table.append(head, ...rows.map((row) => {
    const line = element("tr")
    line.append(element("td", row.name), element("td", row.thread, "thread"),
      ...["time", "share", "calls"].map((name) => element("td", row[name], "number")))
    return line
  }))
  return table
}
