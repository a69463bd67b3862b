// How the timeline looks: the axis, one band per row, labels. `view` is the Timeline whose state is painted.
const LEVELS = 7, STEP_ROOM = 40

function lookOf(view) {
  const style = getComputedStyle(view.root)
  return { ink: style.color, paper: style.getPropertyValue("--st-background-color"), line: style.getPropertyValue("--st-border-color"),
    accent: style.getPropertyValue("--st-link-color"), font: style.fontFamily, names: view.names, colors: view.colors,
    inks: (view.inks ??= {}) }
}

function paintTimeline(view) {
  const { canvas, width, visible } = view, ratio = window.devicePixelRatio || 1
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(visible * ratio)) {
    canvas.width = Math.round(width * ratio)
    canvas.height = Math.round(visible * ratio)
    canvas.style.width = `${width}px`
    canvas.style.height = `${visible}px`
  }
  const pen = canvas.getContext("2d"), look = lookOf(view), marks = ticks(view)
  pen.setTransform(ratio, 0, 0, ratio, 0, 0)
  pen.fillStyle = look.paper
  pen.fillRect(0, 0, width, visible)
  pen.textBaseline = "middle"
  const top = view.scroller.scrollTop
  pen.fillStyle = look.line
  for (const { x } of marks.found) pen.fillRect(Math.round(x), view.head, 1, visible)
  paintBreaks(pen, view, look)
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
  paintFlow(pen, view, look, top)
  paintAxis(pen, view, look, marks)
  paintSpans(pen, view, look)
}

function paintLabel(pen, lane, y, view, look) {
  pen.font = `600 11px ${look.font}`
  pen.fillStyle = look.ink
  const more = lane.more > 0 ? `   ▸ ${lane.more} deeper levels` : lane.layers > FEW_LAYERS ? "   ▾ fewer levels" : ""
  pen.fillText(fit(pen, laneTitle(lane) + more, view.width - 12), 6, y + LABEL / 2 + 1)
}

function paintRow(pen, content, y, view, look) {
  const { tile } = view
  if (content.events) {
    for (let i = 0; i < content.events.length; i += 4) {
      const start = content.events[i] + tile.start, left = Math.max(-2, view.xOf(start))
      if (left > view.width + 1) continue
      const right = Math.min(view.width + 2, view.xOf(start + content.events[i + 1]))
      if (right < -1) continue
      paintEvent(pen, left, Math.max(1, right - left), y, content.events[i + 2], content.events[i + 3], look)
    }
  } else paintCells(pen, content.cells, ...pixelsOf(view, content.cells.length), y, ROW - 2, look)
  if (content.marks) {
    const [shift, pixel] = pixelsOf(view, content.marks.length * 8)
    pen.fillStyle = look.ink
    content.marks.forEach((byte, at) => {
      for (let bit = 0; byte && bit < 8; bit++) if (byte & (128 >> bit)) pen.fillRect(shift + (at * 8 + bit) * pixel - 0.5, y - 2, 2, ROW + 2)
    })
  }
}

// Where the first of a tile's bins is painted, and how wide each is.
function pixelsOf(view, bins) {
  const left = view.xOfDrawn(view.tile.drawnStart)
  return [left, (view.xOfDrawn(view.tile.drawnEnd) - left) / bins]
}

function paintCells(pen, cells, shift, pixel, y, height, look) {
  for (let from = 0, to = 0; from < cells.length; from = to) {
    for (to = from + 1; to < cells.length && cells[to] === cells[from];) to++
    const level = cells[from] & LEVELS
    if (!level) continue
    pen.globalAlpha = 0.25 + (0.75 * level) / LEVELS
    pen.fillStyle = look.colors[cells[from] >> 3]
    pen.fillRect(shift + from * pixel, y, (to - from) * pixel, height)
  }
  pen.globalAlpha = 1
}

function paintEvent(pen, x, width, y, name, kind, look) {
  pen.fillStyle = look.colors[kind]
  pen.fillRect(x, y, width > 3 ? width - 0.5 : width, ROW - 2)
  if (width < 18) return
  pen.font = `11px ${look.font}`
  pen.fillStyle = look.inks[look.colors[kind]] ??= inkOn(look.colors[kind])
  const left = Math.max(0, x)
  const text = look.names[name] ?? "", room = x + width - left - 6, number = text.replace(/^Step (?=\d+$)/, "")
  pen.fillText(pen.measureText(text).width > room && pen.measureText(number).width <= room ? number : fit(pen, text, room), left + 3, y + (ROW - 2) / 2 + 0.5)
}

function paintChosen(pen, view, look, top) {
  if (!view.chosen) return
  const row = view.rows.find(({ lane, layer }) => lane.lane === view.chosen.lane && layer === view.chosen.layer)
  const from = view.xOf(view.chosen.start), to = view.xOf(view.chosen.end)
  if (to < 0 || from > view.width) return
  pen.globalAlpha = 0.1
  pen.fillStyle = look.accent
  pen.fillRect(Math.max(0, from), view.head, Math.max(1, Math.min(to, view.width) - Math.max(0, from)), view.visible)
  pen.globalAlpha = 1
  if (!row) return
  pen.strokeStyle = look.ink
  pen.lineWidth = 2
  pen.strokeRect(Math.max(-3, from), row.top - top - 1, Math.max(3, Math.min(to, view.width + 3) - Math.max(-3, from)), ROW)
}

function paintBreaks(pen, view, look) {
  for (const one of view.axis.within(view.start, view.end)) {
    const left = view.xOf(one.start), right = view.xOf(one.end)
    if (right - left < 2) continue
    pen.fillStyle = look.paper
    pen.fillRect(left, view.head, right - left, view.visible)
    paintHatch(pen, left, right, view.head, view.visible, look)
  }
}

// What was not recorded: slanted lines between two upright ones.
function paintHatch(pen, left, right, top, bottom, look) {
  pen.save()
  pen.beginPath()
  pen.rect(left, top, right - left, bottom - top)
  pen.clip()
  pen.strokeStyle = look.line
  pen.lineWidth = 1
  pen.beginPath()
  const from = Math.max(left, -10), to = Math.min(right, pen.canvas.width + 10)
  for (let y = top - (to - from); y < bottom; y += 7) {
    pen.moveTo(from, y + (to - from))
    pen.lineTo(to, y)
  }
  pen.stroke()
  pen.restore()
  pen.fillStyle = look.line
  for (const x of [left, right - 1]) pen.fillRect(x, top, 1, bottom - top)
}

// From the chosen wait to the events that caused it.
function paintFlow(pen, view, look, top) {
  const from = view.chosen && view.rows[view.rowOf(view.chosen)]
  for (const cause of (from && view.chosen.causes) || []) {
    const to = view.rows[view.rowOf(cause)] ?? view.lanes.find(({ lane }) => lane === cause.lane)
    if (!to) continue
    const x = view.xOf(view.chosen.end), y = from.top - top + ROW, end = view.xOf(cause.end), below = to.top - top
    pen.strokeStyle = pen.fillStyle = look.ink
    pen.lineWidth = 1.5
    pen.beginPath()
    pen.moveTo(x, y)
    pen.bezierCurveTo(x + 24, y + (below - y) / 3, end + 24, below - (below - y) / 3, end, below)
    pen.stroke()
    pen.beginPath()
    pen.moveTo(end, below)
    pen.lineTo(end + 7, below - 5)
    pen.lineTo(end + 1, below - 8)
    pen.fill()
    pen.strokeRect(view.xOf(cause.start), below - 1, Math.max(2, end - view.xOf(cause.start)), ROW)
  }
}

// Moments, and below them the steps with their numbers; both stay in view while the rows scroll.
function paintAxis(pen, view, look, { step, found }) {
  pen.fillStyle = look.paper
  pen.fillRect(0, 0, view.width, view.head)
  pen.fillStyle = look.line
  pen.fillRect(0, view.head - 1, view.width, 1)
  pen.fillStyle = look.ink
  pen.font = `11px ${look.font}`
  for (const { at, x } of found) {
    const text = moment(at, step), room = pen.measureText(text).width
    pen.fillText(text, Math.min(Math.max(2, x - room / 2), view.width - room - 2), RULER / 2)
  }
  for (const one of view.axis.within(view.start, view.end)) {
    const left = view.xOf(one.start), right = view.xOf(one.end)
    const text = fit(pen, `${duration(one.end - one.start)} not recorded`, right - left - 6)
    if (text) pen.fillText(text, left + 3, RULER / 2)
    else if (right - left > 9) pen.fillText("≀", (left + right) / 2 - 3, RULER / 2)
  }
  for (const [start, length, number] of view.tile?.steps ?? []) {
    const left = view.xOf(start + view.tile.start), right = view.xOf(start + length + view.tile.start)
    if (right < 0 || left > view.width) continue
    pen.globalAlpha = 0.55
    pen.fillRect(left, RULER, 1, STEPS)
    pen.globalAlpha = 1
    const text = `step ${number}`, from = Math.max(left, 0) + 4, room = Math.max(Math.min(right, view.width) - from, STEP_ROOM)
    pen.fillText(pen.measureText(text).width <= room ? text : fit(pen, number, room), from, RULER + STEPS / 2)
  }
}

// The range, what lies outside of it faint, and the marks with their letters.
function paintSpans(pen, view, look) {
  const { range } = view
  if (range) {
    const left = view.xOf(range.start), right = view.xOf(range.end)
    pen.globalAlpha = 0.6
    pen.fillStyle = look.paper
    pen.fillRect(0, view.head, left, view.visible)
    pen.fillRect(right, view.head, Math.max(0, view.width - right), view.visible)
    pen.globalAlpha = 1
    paintSpan(pen, view, look.accent, left, right, duration(range.end - range.start), look)
  }
  view.marks.forEach((one, number) => paintSpan(pen, view, look.ink, view.xOf(one.start), view.xOf(one.end), letter(number), look))
}

function paintSpan(pen, view, color, left, right, text, look) {
  pen.fillStyle = color
  for (const x of [left, right]) pen.fillRect(Math.round(x) - 0.5, 0, 1.5, view.visible)
  if (right < 0 || left > view.width) return
  const width = pen.measureText(text).width + 8, middle = (Math.max(left, 0) + Math.min(right, view.width)) / 2
  const from = Math.min(Math.max(text.length > 1 ? middle - width / 2 : left, 0), view.width - width)
  pen.fillRect(from, 0, width, 15)
  pen.fillStyle = look.paper
  pen.fillText(text, from + 4, 8)
}

function tipText(content, view, x) {
  const time = view.timeAt(x), near = (2 / view.width) * (view.drawnEnd - view.drawnStart)
  if (content.events) {
    for (let i = 0; i < content.events.length; i += 4) {
      const start = content.events[i] + view.tile.start, length = content.events[i + 1]
      if (time >= start - near && time <= start + length + near) {
        return `${view.names[content.events[i + 2]] ?? ""} · ${duration(length)} · ${view.data.classes[content.events[i + 3]].title}`
      }
    }
    return ""
  }
  const { drawnStart, drawnEnd } = view.tile
  const cell = content.cells[Math.floor(((view.axis.drawn(time) - drawnStart) / (drawnEnd - drawnStart)) * content.cells.length)]
  if (!cell || !(cell & LEVELS)) return ""
  return `Mostly ${view.data.classes[cell >> 3].title}, about ${Math.round((100 * (cell & LEVELS)) / LEVELS)} % of this pixel; zoom in to see single events`
}

const laneTitle = (lane) => `${lane.title}${lane.host ? `  ·  ${lane.host}` : ""}`

const bytes = (text) => Uint8Array.from(atob(text), (one) => one.charCodeAt(0))

const ready = (row) => ({ ...row, cells: row.cells && bytes(row.cells), marks: row.marks && bytes(row.marks) })

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
