// The timeline: asks the app for what fits the screen, paints it, and follows mouse, fingers and keys.
// `start`, `end` and all times are ns on the run's axis.
export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".timeline")
  if (root.timeline) root.timeline.update(data)
  else root.timeline = new Timeline(root, data)
  root.timeline.goBack = (section) => setTriggerValue("section", section)
  root.timeline.watch()
  return () => root.timeline.unwatch()
}

const AXIS = 22, LABEL = 16, ROW = 15, GAP = 5, MAX_HEIGHT = 620, FEW_LAYERS = 5, SETTLE_MS = 40
const SHORTEST_NS = 50

class Timeline {
  constructor(root, data) {
    this.root = root
    this.find = (name) => root.querySelector(name)
    this.canvas = this.find("canvas")
    this.scroller = this.find(".scroller")
    Object.assign(this, { expanded: new Set(), all: false, marked: [], tile: null, chosen: null, cursor: 0, names: {} })
    this.pointers = new Map()
    this.update(data)
    const [from, to] = (data.view.match(/^(-?\d+)-(-?\d+)$/) ?? []).slice(1).map(Number)
    this.setView(from ?? data.opening[0], to ?? data.opening[1], false)
    this.listen()
    if (data.pick) this.choose(`event?pick=${encodeURIComponent(data.pick)}`, from === undefined)
  }

  update(data) {
    const moved = this.data && this.data.url !== data.url
    this.data = data
    this.colors = data.classes.map((one) => one.color)
    if (moved) this.tile = null
    const hidden = data.lanes.filter((lane) => !lane.shown).length
    this.find(".all").hidden = !hidden
    this.find(".all span").textContent = `All threads (${hidden} more)`
    this.find(".legend").replaceChildren(...data.classes.filter((one) => one.used).map((one) => {
      const swatch = element("i")
      swatch.style.background = one.color
      const item = element("li")
      item.append(swatch, one.title)
      return item
    }))
    this.arrange()
    if (this.start !== undefined) { this.paint(); this.ask() }
  }

  watch() {
    this.observer ??= new ResizeObserver(() => { this.paint(); this.ask() })
    this.observer.observe(this.scroller)
  }

  unwatch() {
    this.observer?.disconnect()
    clearTimeout(this.waiting)
  }

  // Lanes and rows with their places from top to bottom.
  arrange() {
    this.lanes = []
    this.rows = []
    let top = AXIS
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
  timeAt(x) { return this.start + (x / this.width) * (this.end - this.start) }
  xOf(time) { return ((time - this.start) / (this.end - this.start)) * this.width }
  rowAt(y) { return this.rows.find((row) => y >= row.top && y < row.top + ROW) }

  setView(start, end, remember = true) {
    const { start: first, end: last } = this.data
    const span = Math.min(Math.max(end - start, SHORTEST_NS), (last - first) * 1.1)
    const wanted = (start + end - span) / 2, margin = 0.05 * span
    this.start = Math.round(Math.min(Math.max(wanted, first - margin), Math.max(first - margin, last + margin - span)))
    this.end = Math.max(this.start + 1, Math.round(this.start + span))
    this.find(".tip").hidden = true  // it described the previous view
    this.paint()
    this.ask()
    const whole = first < this.start || last > this.end
    this.find(".range").textContent = `${duration(this.end - this.start)} from ${duration(this.start)}` +
      (whole ? ` of ${duration(last - first)} in all` : "; the whole run")
    if (remember) this.remember({ view: `${this.start}-${this.end}` })
  }

  zoom(factor, x = this.width / 2) {
    const at = this.timeAt(x), span = Math.max(SHORTEST_NS, (this.end - this.start) * factor)
    const start = at - (x / this.width) * span
    this.setView(start, start + span)
  }

  pan(share) {
    const by = (this.end - this.start) * share
    this.setView(this.start + by, this.end + by)
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

  ask() {
    clearTimeout(this.waiting)
    this.waiting = setTimeout(() => this.fetchView(), SETTLE_MS)
  }

  async fetchView() {
    const [start, end, width] = [this.start, this.end, Math.round(this.width)]
    if (!width) return
    const { scrollTop } = this.scroller
    const rows = this.rows.filter(({ top }) => top + ROW > scrollTop && top < scrollTop + this.visible)
    const query = new URLSearchParams({
      start, end, px: Math.min(width, 4000), rows: rows.map(({ lane, layer }) => `${lane.lane}.${layer}`).join(","),
      marked: this.marked.join(","),
    })
    const asked = performance.now()
    const answer = await this.get(`view?${query}`)
    if (!answer) return
    Object.assign(this.names, answer.names)
    this.tile = { start, end, width, rows: new Map(answer.rows.map((row) => [`${row.lane}.${row.layer}`, ready(row)])) }
    this.paint()
    this.root.dataset.tile = `${start}-${end}`
    this.root.dataset.viewMs = (performance.now() - asked).toFixed(1)
  }

  async get(path) {
    const kind = path.split("?")[0]
    this.asking ??= {}
    this.asking[kind]?.abort()
    const control = (this.asking[kind] = new AbortController())
    try {
      const reply = await fetch(`${this.data.url}/${path}`, { signal: control.signal })
      const answer = await reply.json()
      if (!reply.ok) throw new Error(answer.error)
      return answer
    } catch (error) {
      if (error.name !== "AbortError") this.find(".range").textContent = error.message || "The app does not respond."
      return null
    }
  }

  async choose(path, zoom = false) {
    const found = await this.get(path)
    if (!found) return
    this.chosen = found
    if (!this.rows.some(({ lane, layer }) => lane.lane === found.lane && layer === found.layer)) this.reveal(found)
    this.cursor = this.rows.findIndex(({ lane, layer }) => lane.lane === found.lane && layer === found.layer)
    this.showRow()
    const span = Math.max(found.end - found.start, SHORTEST_NS)
    if (zoom) this.setView(found.start - 2 * span, found.end + 2 * span)
    else if (found.end < this.start || found.start > this.end) {
      const half = (this.end - this.start) / 2, middle = (found.start + found.end) / 2
      this.setView(middle - half, middle + half)
    }
    this.describe()
    this.remember({ pick: found.pick })
    this.paint()
  }

  reveal(found) {
    this.expanded.add(found.lane)
    if (this.data.lanes.some((lane) => lane.lane === found.lane && !lane.shown)) {
      this.all = this.find(".all input").checked = true
    }
    this.arrange()
  }

  letGo() {
    this.chosen = null
    this.find(".details").replaceChildren()
    this.remember({ pick: null })
    this.paint()
  }

  describe() {
    const { title, facts, meanwhile, section } = this.chosen
    const list = element("dl")
    for (const [name, value] of facts) list.append(element("dt", name), element("dd", value))
    const parts = [element("h3", title), list]
    if (meanwhile?.rows.length) parts.push(operations(meanwhile.rows))
    if (meanwhile?.note) parts.push(element("p", meanwhile.note, "help"))
    const actions = element("div", "", "actions")
    const zoom = element("button", "Zoom to it")
    zoom.onclick = () => this.zoomToChosen()
    actions.append(zoom)
    if (section && this.data.sections) {
      const back = element("button", `Back to ${section}`)
      back.onclick = () => this.goBack(section)
      actions.append(back)
    }
    this.find(".details").replaceChildren(...parts, actions)
  }

  zoomToChosen() {
    if (!this.chosen) return
    const { start, end } = this.chosen, margin = Math.max(end - start, SHORTEST_NS) * 0.25
    this.setView(start - margin, end + margin)
  }

  step(back) {
    const row = this.rows[this.cursor]
    if (!row) return
    const isHere = this.chosen && this.chosen.lane === row.lane.lane && this.chosen.layer === row.layer
    const time = isHere ? this.chosen.start : Math.round((this.start + this.end) / 2)
    this.choose(`next?place=${row.lane.lane}.${row.layer}&time=${time}&back=${back ? 1 : 0}`)
  }

  moveCursor(by) {
    this.cursor = Math.min(Math.max(this.cursor + by, 0), this.rows.length - 1)
    this.showRow()
    const { lane, layer } = this.rows[this.cursor]
    this.find(".range").textContent = `Row: ${laneTitle(lane)}${lane.layers > 1 ? `, level ${layer + 1}` : ""}`
    this.paint()
  }

  showRow() {
    const row = this.rows[this.cursor]
    if (!row) return
    const { scrollTop } = this.scroller
    if (row.top - LABEL - AXIS < scrollTop) this.scroller.scrollTop = row.top - LABEL - AXIS
    else if (row.top + ROW > scrollTop + this.visible) this.scroller.scrollTop = row.top + ROW - this.visible
  }

  toggleLayers(lane) {
    if (!this.expanded.delete(lane.lane)) this.expanded.add(lane.lane)
    this.arrange()
    this.paint()
    this.ask()
  }

  async search(words) {
    const list = this.find(".matches")
    const found = words.trim() ? await this.get(`search?words=${encodeURIComponent(words.trim())}`) : { names: [], shown: [] }
    if (!found) return
    list.hidden = !words.trim()
    list.replaceChildren(...found.shown.map((one) => {
      const button = element("button")
      button.type = "button"
      button.append(element("span", one.label), element("small", one.text))
      button.onclick = () => {
        for (const other of list.querySelectorAll("button")) other.setAttribute("aria-pressed", other === button)
        this.mark([one.number])
        this.jumpToMatch(false)
      }
      const item = element("li")
      item.append(button)
      return item
    }))
    if (!found.names.length && words.trim()) list.append(element("li", "No event names match."))
    else if (found.names.length > found.shown.length) list.append(element("li", `${found.names.length - found.shown.length} more names.`))
    this.mark(found.names)
  }

  mark(names) {
    this.marked = names.slice(0, 100)
    for (const name of [".previous", ".next"]) this.find(name).disabled = !names.length
    this.ask()
  }

  jumpToMatch(back) {
    if (!this.marked.length) return
    const time = this.chosen ? this.chosen.start : back ? this.end : this.start
    this.choose(`next?marked=${this.marked.join(",")}&time=${Math.round(time)}&back=${back ? 1 : 0}`)
  }

  listen() {
    const on = (name, type, act, options) => this.find(name).addEventListener(type, act, options)
    on(".in", "click", () => this.zoom(0.5))
    on(".out", "click", () => this.zoom(2))
    on(".whole", "click", () => this.setView(this.data.start, this.data.end))
    on(".next", "click", () => this.jumpToMatch(false))
    on(".previous", "click", () => this.jumpToMatch(true))
    on(".words", "input", (event) => {
      const words = event.target.value
      clearTimeout(this.typing)
      this.typing = setTimeout(() => this.search(words), 200)
    })
    on(".words", "keydown", (event) => { if (event.key === "Enter") this.jumpToMatch(event.shiftKey) })
    on(".all input", "change", (event) => { this.all = event.target.checked; this.arrange(); this.paint(); this.ask() })
    on(".scroller", "scroll", () => { this.paint(); this.ask() })
    on(".scroller", "wheel", (event) => this.onWheel(event), { passive: false })
    on(".scroller", "pointerdown", (event) => this.onDown(event))
    on(".scroller", "pointermove", (event) => this.onMove(event))
    on(".scroller", "pointerup", (event) => this.onUp(event))
    on(".scroller", "pointercancel", (event) => this.pointers.delete(event.pointerId))
    on(".scroller", "pointerleave", () => { this.find(".tip").hidden = true })
    on(".scroller", "dblclick", () => this.zoomToChosen())
    on(".scroller", "keydown", (event) => this.onKey(event))
  }

  place(event) {
    const box = this.scroller.getBoundingClientRect()
    return { x: event.clientX - box.left, y: event.clientY - box.top + this.scroller.scrollTop }
  }

  onWheel(event) {
    if (!event.ctrlKey && this.root.getRootNode().activeElement !== this.scroller) return
    event.preventDefault()
    const { x } = this.place(event)
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.pan((event.deltaX || event.deltaY) / this.width)
    else this.zoom(Math.exp(Math.max(-400, Math.min(400, event.deltaY)) * 0.002), x)
  }

  onDown(event) {
    if (event.button) return
    this.scroller.setPointerCapture(event.pointerId)
    this.pointers.set(event.pointerId, { ...this.place(event), clientY: event.clientY, start: this.start, end: this.end, scrollTop: this.scroller.scrollTop })
    this.moved = false
  }

  onMove(event) {
    const from = this.pointers.get(event.pointerId), to = this.place(event)
    if (!from) return this.hover(event, to)
    const others = [...this.pointers].filter(([id]) => id !== event.pointerId)
    if (others.length) {  // two fingers: their distance is the zoom
      const [, other] = others[0]
      this.zoom(Math.max(10, Math.abs(from.x - other.x)) / Math.max(10, Math.abs(to.x - other.x)), (to.x + other.x) / 2)
      Object.assign(from, { x: to.x })
      this.moved = true
      return
    }
    const dx = to.x - from.x, dy = event.clientY - from.clientY
    if (!this.moved && Math.hypot(dx, dy) < 4) return
    this.moved = true
    this.scroller.classList.add("dragging")
    const by = (-dx / this.width) * (from.end - from.start)
    this.setView(from.start + by, from.end + by)
    if (event.pointerType === "mouse") this.scroller.scrollTop = from.scrollTop - dy
  }

  onUp(event) {
    const from = this.pointers.get(event.pointerId)
    this.pointers.delete(event.pointerId)
    this.scroller.classList.remove("dragging")
    if (!from || this.moved) return
    const { x, y } = this.place(event)
    const label = this.lanes.find((lane) => y >= lane.top && y < lane.top + LABEL)
    if (label && label.layers > FEW_LAYERS) return this.toggleLayers(label)
    const row = this.rowAt(y)
    if (!row) return
    this.cursor = this.rows.indexOf(row)
    const tolerance = Math.ceil((1.5 / this.width) * (this.end - this.start))
    this.choose(`event?place=${row.lane.lane}.${row.layer}&time=${Math.round(this.timeAt(x))}&tolerance=${tolerance}`)
  }

  onKey(event) {
    const acts = {
      ArrowLeft: () => this.pan(-0.15), ArrowRight: () => this.pan(0.15), ArrowUp: () => this.moveCursor(-1),
      ArrowDown: () => this.moveCursor(1), "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2),
      Home: () => this.setView(this.data.start, this.data.end), Enter: () => this.zoomToChosen(), ".": () => this.step(false),
      ",": () => this.step(true), Escape: () => this.letGo(),
      e: () => this.rows[this.cursor] && this.toggleLayers(this.rows[this.cursor].lane),
    }
    const act = acts[event.key]
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return
    event.preventDefault()
    act()
  }

  hover(event, { x, y }) {
    const tip = this.find(".tip"), row = this.rowAt(y)
    const content = row && this.tile?.rows.get(`${row.lane.lane}.${row.layer}`)
    const text = content && tipText(content, this, x)
    tip.hidden = !text
    if (!text) return
    tip.textContent = text
    tip.style.left = `${Math.min(event.clientX + 12, window.innerWidth - 240)}px`
    tip.style.top = `${event.clientY + 14}px`
  }

  paint() {
    if (this.start !== undefined && this.width) paintTimeline(this)
  }
}
