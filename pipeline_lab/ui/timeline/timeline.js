// The timeline: asks the app for what fits the screen, and paints it. `start`, `end` and all times are ns on the run's axis.
// Other files of this folder follow: the axis, what mouse, fingers and keys do, what stands below, how it looks, the minimap.
export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".timeline")
  if (root.timeline) root.timeline.update(data)
  else root.timeline = new Timeline(root, data)
  root.timeline.goBack = (section) => setTriggerValue("section", section)
  root.timeline.watch()
  return () => root.timeline.unwatch()
}

const RULER = 22, STEPS = 16, LABEL = 16, ROW = 15, GAP = 5, MAX_HEIGHT = 620, FEW_LAYERS = 5, SETTLE_MS = 30
const SHORTEST_NS = 50

class Timeline {
  constructor(root, data) {
    this.root = root
    this.find = (name) => root.querySelector(name)
    this.canvas = this.find(".scene")
    this.minimap = this.find(".minimap")
    this.scroller = this.find(".scroller")
    Object.assign(this, { expanded: new Set(), all: false, collapsed: true, marked: [], tile: null, chosen: null, described: null, range: null, names: {} })
    Object.assign(this, { cursor: 0, pointers: new Map(), asking: {}, marks: spans(data.asked.marks) })
    this.update(data)
    const [view] = spans(data.asked.view), [range] = spans(data.asked.range)
    this.setView(view?.start ?? data.start, view?.end ?? data.end, false)
    this.listen()
    this.showMarks()
    onThemeChange(root, () => { this.update(this.data); if (this.described) this.describe(this.described) })
    if (range) this.chooseRange(range.start, range.end)
    if (data.asked.pick) this.choose(`event?pick=${encodeURIComponent(data.asked.pick)}`, !view)
  }

  update(data) {
    const moved = this.data && this.data.url !== data.url
    this.data = data
    this.colors = data.classes.map((one) => (isDark(this.root) ? one.dark : one.light))
    if (moved) this.tile = this.overview = null
    const hidden = data.lanes.filter((lane) => !lane.shown).length
    this.find(".all").hidden = !hidden
    this.find(".all span").textContent = `All threads (${hidden} more)`
    this.find(".collapse").hidden = !data.breaks.length
    this.find(".legend").replaceChildren(...data.classes.flatMap((one, kind) => {
      if (!one.used) return []
      const item = element("li")
      item.append(swatch(this.colors[kind]), one.title)
      return item
    }))
    this.arrange()
    this.setAxis()
    if (this.start !== undefined) this.setView(this.start, this.end, false)
  }

  setAxis() {
    this.axis = new TimeAxis(this.collapsed ? this.data.breaks : [], this.data.room)
    this.overview = null
  }

  watch() {
    this.observer ??= new ResizeObserver(() => { this.paint(); this.ask() })
    this.observer.observe(this.scroller)
    this.hear ??= (event) => this.onDocumentKey(event)
    document.addEventListener("keydown", this.hear)
  }

  unwatch() {
    this.observer?.disconnect()
    document.removeEventListener("keydown", this.hear)
    clearTimeout(this.waiting)
    this.waiting = 0
    this.release()
  }

  // Lanes and rows with their places from top to bottom.
  arrange() {
    this.lanes = []
    this.rows = []
    this.head = RULER + (this.data.lanes.some((lane) => lane.kind === "steps") ? STEPS : 0)
    let top = this.head
    for (const lane of this.data.lanes) {
      if (!lane.shown && !this.all) continue
      const layers = this.expanded.has(lane.lane) ? lane.layers : Math.min(lane.layers, FEW_LAYERS)
      this.lanes.push({ ...lane, top, more: lane.layers - layers })
      top += LABEL
      for (let layer = 0; layer < layers; layer++, top += ROW) this.rows.push({ lane, layer, top })
      top += GAP
    }
    this.height = top
    this.visible = Math.min(MAX_HEIGHT, top)
    this.scroller.style.height = `${this.visible + 2}px`
    this.find(".spacer").style.height = `${Math.max(0, top - this.visible)}px`
    this.cursor = Math.min(this.cursor, this.rows.length - 1)
  }

  get width() { return this.scroller.clientWidth }
  timeAt(x) { return this.axis.time(this.drawnStart + (x / this.width) * (this.drawnEnd - this.drawnStart)) }
  xOf(time) { return this.xOfDrawn(this.axis.drawn(time)) }
  xOfDrawn(drawn) { return ((drawn - this.drawnStart) / (this.drawnEnd - this.drawnStart)) * this.width }
  rowAt(y) { return this.rows.find((row) => y >= row.top && y < row.top + ROW) }
  rowOf({ lane, layer }) { return this.rows.findIndex((row) => row.lane.lane === lane && row.layer === layer) }

  setView(start, end, remember = true) { this.setDrawn(this.axis.drawn(start), this.axis.drawn(end), remember) }

  // Show a stretch of the drawn axis, but not much more than all of it.
  setDrawn(start, end, remember = true) {
    const first = this.axis.drawn(this.data.start), last = this.axis.drawn(this.data.end)
    const span = Math.min(Math.max(end - start, SHORTEST_NS), (last - first) * 1.1), margin = 0.05 * span
    const wanted = (start + end - span) / 2
    const from = Math.min(Math.max(wanted, first - margin), Math.max(first - margin, last + margin - span))
    this.start = Math.round(this.axis.time(from))
    this.end = Math.max(this.start + 1, Math.round(this.axis.time(from + span)))
    this.drawnStart = this.axis.drawn(this.start)
    this.drawnEnd = this.axis.drawn(this.end)
    this.find(".tip").hidden = true  // it described the previous view
    this.paint()
    this.ask()
    this.say(this.viewText())
    if (remember) this.remember({ view: `${this.start}-${this.end}` })
  }

  viewText() {
    const { start, end } = this.data, off = this.axis.within(start, end).reduce((sum, one) => sum + one.end - one.start, 0)
    const all = off ? `${duration(end - start)} in all, ${duration(end - start - off)} of it recorded` : `${duration(end - start)} in all`
    const whole = start < this.start || end > this.end
    return whole ? `${duration(this.end - this.start)} from ${duration(this.start)}, of ${all}` : `The whole run: ${all}`
  }

  say(text) { this.find(".range").textContent = text }

  zoom(factor, x = this.width / 2) {
    const span = this.drawnEnd - this.drawnStart, at = this.drawnStart + (x / this.width) * span
    const wanted = Math.max(SHORTEST_NS, span * factor), start = at - (x / this.width) * wanted
    this.setDrawn(start, start + wanted)
  }

  pan(share) {
    const by = (this.drawnEnd - this.drawnStart) * share
    this.setDrawn(this.drawnStart + by, this.drawnEnd + by)
  }

  showWhole() { this.setView(this.data.start, this.data.end) }

  // Fit the chosen range or event, with a margin; without either the whole run.
  fit() {
    const found = this.range ?? this.chosen
    if (!found) return this.showWhole()
    const start = this.axis.drawn(found.start), end = this.axis.drawn(found.end), margin = Math.max(end - start, SHORTEST_NS) * 0.25
    this.setDrawn(start - margin, end + margin)
  }

  // The address keeps view and choice, so that it can be sent to others; Streamlit reads it when the page runs again.
  remember(values) {
    Object.assign(this.remembered ??= {}, values)
    clearTimeout(this.writing)
    this.writing = setTimeout(() => {
      const url = new URL(window.location)
      for (const [name, value] of Object.entries(this.remembered)) {
        if (value) url.searchParams.set(name, value)
        else url.searchParams.delete(name)
      }
      this.remembered = {}
      window.history.replaceState(window.history.state, "", url)
    }, 250)
  }

  // One question at a time: while the view moves, each answer is followed by the next question.
  ask() {
    this.stale = true
    this.waiting ||= setTimeout(async () => {
      this.stale = false
      try {
        await this.fetchView()
      } finally {
        this.waiting = 0
        if (this.stale) this.ask()
      }
    }, SETTLE_MS)
  }

  async fetchView() {
    const { start, end, drawnStart, drawnEnd, axis } = this, width = Math.round(this.width), asked = performance.now()
    if (!width) return
    const { scrollTop } = this.scroller
    const rows = this.rows.filter(({ top }) => top + ROW > scrollTop && top < scrollTop + this.visible)
    const [answer] = await Promise.all([this.getView("view", start, end, rows, this.marked), this.fetchOverview(width)])
    if (!answer || axis !== this.axis) return
    Object.assign(this.names, answer.names)
    this.tile = { start, end, drawnStart, drawnEnd, steps: answer.steps, rows: new Map(answer.rows.map((row) => [`${row.lane}.${row.layer}`, ready(row)])) }
    this.paint()
    this.root.dataset.tile = `${start}-${end}`
    this.root.dataset.viewMs = (performance.now() - asked).toFixed(1)
  }

  // The minimap's rows over the whole run, asked for once and after each change of the width or the axis.
  async fetchOverview(width) {
    if (this.overview?.width === width) return
    const { start, end } = this.data, { axis } = this
    const devices = this.data.lanes.filter((lane) => lane.kind === "device")
    const lanes = (devices.length ? devices : this.data.lanes.filter((lane) => lane.shown && lane.kind !== "windows")).slice(0, 3)
    const answer = await this.getView("overview", start, end, lanes.map((lane) => ({ lane, layer: 0 })), [])
    if (answer && axis === this.axis) {
      this.overview = { width, start, end, drawnStart: axis.drawn(start), drawnEnd: axis.drawn(end), rows: answer.rows.map(ready) }
    }
  }

  getView(kind, start, end, rows, marked) {
    const query = new URLSearchParams({
      start, end, px: Math.min(Math.round(this.width), 4000), collapse: this.collapsed ? 1 : 0,
      rows: rows.map(({ lane, layer }) => `${lane.lane}.${layer}`).join(","), marked: marked.join(","),
    })
    return this.get(`view?${query}`, kind)
  }

  async get(path, kind = path.split("?")[0]) {
    this.asking[kind]?.abort()
    const control = (this.asking[kind] = new AbortController())
    try {
      const reply = await fetch(`${this.data.url}/${path}`, { signal: control.signal })
      const answer = await reply.json()
      if (!reply.ok) throw new Error(answer.error)
      return answer
    } catch (error) {
      if (error.name !== "AbortError") this.say(error.message || "The app does not respond.")
      return null
    }
  }

  async choose(path, zoom = false) {
    const found = await this.get(path, "choice")
    if (!found) return false
    this.chosen = found
    this.range = null
    if (this.rowOf(found) < 0) this.reveal(found)
    this.cursor = this.rowOf(found)
    this.showRow()
    const start = this.axis.drawn(found.start), end = this.axis.drawn(found.end), span = Math.max(end - start, SHORTEST_NS)
    if (zoom) this.setDrawn(start - 2 * span, end + 2 * span)
    else if (found.end < this.start || found.start > this.end) {
      const half = (this.drawnEnd - this.drawnStart) / 2, middle = (start + end) / 2
      this.setDrawn(middle - half, middle + half)
    }
    this.describe(found)
    this.remember({ pick: found.pick, range: null })
    this.paint()
    return true
  }

  reveal(found) {
    this.expanded.add(found.lane)
    if (this.data.lanes.some((lane) => lane.lane === found.lane && !lane.shown)) {
      this.all = this.find(".all input").checked = true
    }
    this.arrange()
  }

  // Choose a stretch of time and say what it went into; while it is still being drawn only say how long it is.
  async chooseRange(start, end, isDone = true) {
    const [from, to] = [start, end].sort((a, b) => a - b).map((at) => Math.round(Math.min(Math.max(at, this.data.start), this.data.end)))
    this.range = { start: Math.min(from, to - 1), end: to }
    this.chosen = null
    this.paint()
    this.say(`Range: ${duration(this.range.end - this.range.start)} from ${duration(this.range.start)}`)
    if (!isDone) return
    const { range } = this
    this.remember({ pick: null, range: `${range.start}-${range.end}` })
    const found = await this.get(`range?start=${range.start}&end=${range.end}`, "choice")
    if (found && this.range === range) this.describe(found)
  }

  letGo() {
    this.chosen = this.range = null
    this.asking.choice?.abort()
    this.described = null
    this.find(".details").replaceChildren()
    this.remember({ pick: null, range: null })
    this.paint()
  }

  // Mark the chosen range or event, or else the moment under the pointer; what is marked already is marked no longer.
  mark() {
    const at = Math.round(this.pointerX === undefined ? (this.start + this.end) / 2 : this.timeAt(this.pointerX))
    const { start, end } = this.range ?? this.chosen ?? { start: at, end: at }
    const kept = this.marks.filter((one) => one.start !== start || one.end !== end)
    this.marks = kept.length < this.marks.length ? kept : [...kept, { start, end }].slice(-26)
    this.showMarks()
    this.remember({ marks: this.marks.map((one) => `${one.start}-${one.end}`).join(",") })
    this.paint()
  }

  step(back) {
    const row = this.rows[this.cursor]
    if (!row) return
    const isHere = this.chosen && this.chosen.lane === row.lane.lane && this.chosen.layer === row.layer
    const time = isHere ? this.chosen.start : back ? this.end : this.start - 1
    this.choose(`next?place=${row.lane.lane}.${row.layer}&time=${time}&back=${back ? 1 : 0}`)
  }

  moveCursor(by) {
    this.cursor = Math.min(Math.max(this.cursor + by, 0), this.rows.length - 1)
    this.showRow()
    const { lane, layer } = this.rows[this.cursor]
    this.say(`Row: ${laneTitle(lane)}${lane.layers > 1 ? `, level ${layer + 1}` : ""}`)
    this.paint()
  }

  showRow() {
    const row = this.rows[this.cursor]
    if (!row) return
    const { scrollTop } = this.scroller
    if (row.top - LABEL - this.head < scrollTop) this.scroller.scrollTop = row.top - LABEL - this.head
    else if (row.top + ROW > scrollTop + this.visible) this.scroller.scrollTop = row.top + ROW - this.visible
  }

  toggleLayers(lane) {
    if (!this.expanded.delete(lane.lane)) this.expanded.add(lane.lane)
    this.arrange()
    this.paint()
    this.ask()
  }

  paint() {
    if (this.start === undefined || !this.width) return
    paintTimeline(this)
    paintMinimap(this)
  }
}

// `START-END,…` in ns.
const spans = (text) => [...(text ?? "").matchAll(/(-?\d+)-(-?\d+)(,|$)/g)].map(([, start, end]) => ({ start: +start, end: +end }))
