// What mouse, touch pad, fingers and keys do.
const KEYS = [
  ["W S", "zoom in and out, where the pointer is"],
  ["A D", "move left and right"],
  ["F", "fit the selection; Enter too"],
  ["0", "show the whole run; Home too"],
  ["M", "mark the selection, or the moment under the pointer; again: remove the mark"],
  ["V", "select what is in view, with its sums by cause"],
  ["Shift ← →", "move the right edge of the selected range"],
  [", .", "previous and next event of the row"],
  ["↑ ↓", "choose a row"],
  ["] [", "follow a wait to what caused it, and go back"],
  ["E", "open or close a thread's deeper levels"],
  ["/", "find an event by its name"],
  ["Esc", "clear the selection"],
  ["drag", "select a range; drag its edges to change it"],
  ["Shift drag", "move; a finger moves too, and selects on the axis"],
  ["wheel", "scroll the rows; Shift: move; Ctrl or a pinch: zoom"],
]
const EDGE = 5, HOLD_MS = 180

Object.assign(Timeline.prototype, {
  listen() {
    const on = (name, type, act, options) => this.find(name).addEventListener(type, act, options)
    on(".in", "click", () => this.zoom(0.5))
    on(".out", "click", () => this.zoom(2))
    on(".fit", "click", () => this.fit())
    on(".whole", "click", () => this.showWhole())
    on(".next", "click", () => this.jumpToMatch(false))
    on(".previous", "click", () => this.jumpToMatch(true))
    on(".help-button", "click", () => this.toggleHelp())
    on(".words", "input", (event) => {
      const words = event.target.value
      clearTimeout(this.typing)
      this.typing = setTimeout(() => this.search(words), 200)
    })
    on(".words", "keydown", (event) => { if (event.key === "Enter") this.jumpToMatch(event.shiftKey) })
    on(".all input", "change", (event) => { this.all = event.target.checked; this.arrange(); this.paint(); this.ask() })
    on(".collapse input", "change", (event) => {
      this.collapsed = event.target.checked
      this.tile = null
      this.setAxis()
      this.setView(this.start, this.end)
    })
    on(".scroller", "scroll", () => { this.paint(); this.ask() })
    on(".scroller", "wheel", (event) => this.onWheel(event), { passive: false })
    on(".scroller", "pointerdown", (event) => this.onDown(event))
    on(".scroller", "pointermove", (event) => this.onMove(event))
    on(".scroller", "pointerup", (event) => this.onUp(event))
    on(".scroller", "pointercancel", (event) => this.drop(event))
    on(".scroller", "pointerleave", () => this.leave())
    on(".scroller", "dblclick", () => this.fit())
    on(".scroller", "keydown", (event) => this.onKey(event))
    on(".scroller", "keyup", () => this.release())
    on(".scroller", "blur", () => this.release())
    this.listenToMinimap()
  },

  place(event) {
    const box = this.scroller.getBoundingClientRect()
    return { x: event.clientX - box.left, y: event.clientY - box.top + this.scroller.scrollTop }
  },

  onWheel(event) {
    const sideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)
    if (!event.ctrlKey && !event.metaKey && !sideways) return  // the rows scroll, and the page beyond them
    event.preventDefault()
    if (sideways) this.pan((event.deltaX || event.deltaY) / this.width)
    else this.zoom(Math.exp(Math.max(-400, Math.min(400, event.deltaY)) * (event.deltaMode ? 0.06 : 0.004)), this.place(event).x)
  },

  // A mouse selects; with Shift, with the middle button and with a finger the view moves. On the axis a finger selects too.
  onDown(event) {
    if (event.button > 1) return
    if (event.button) event.preventDefault()
    this.scroller.setPointerCapture(event.pointerId)
    const { x, y } = this.place(event), onAxis = y - this.scroller.scrollTop < this.head
    const pans = event.shiftKey || event.button === 1 || (event.pointerType === "touch" && !onAxis)
    const edge = this.range && !pans && this.edgeAt(x)
    this.pointers.set(event.pointerId, {
      x, y, clientY: event.clientY, start: this.drawnStart, end: this.drawnEnd, scrollTop: this.scroller.scrollTop, pans,
      anchor: edge ? this.range[edge === "start" ? "end" : "start"] : this.timeAt(x),
    })
    this.moved = false
  },

  edgeAt(x) { return ["start", "end"].find((edge) => Math.abs(this.xOf(this.range[edge]) - x) <= EDGE) },

  onMove(event) {
    const from = this.pointers.get(event.pointerId), to = this.place(event)
    this.pointAt(to.x)
    if (!from) return this.hover(event, to)
    const others = [...this.pointers].filter(([id]) => id !== event.pointerId)
    if (others.length) {  // two fingers: their distance is the zoom
      const [, other] = others[0]
      this.zoom(Math.max(10, Math.abs(from.x - other.x)) / Math.max(10, Math.abs(to.x - other.x)), (to.x + other.x) / 2)
      Object.assign(from, { x: to.x, start: this.drawnStart, end: this.drawnEnd })
      Object.assign(other, { start: this.drawnStart, end: this.drawnEnd })
      this.moved = true
      return
    }
    const dx = to.x - from.x, dy = event.clientY - from.clientY
    if (!this.moved && Math.hypot(dx, dy) < 4) return
    this.moved = true
    if (!from.pans) return void this.chooseRange(from.anchor, this.timeAt(Math.min(Math.max(to.x, 0), this.width)), false)
    this.scroller.classList.add("dragging")
    const by = (-dx / this.width) * (from.end - from.start)
    this.setDrawn(from.start + by, from.end + by)
    if (event.pointerType === "mouse") this.scroller.scrollTop = from.scrollTop - dy
  },

  onUp(event) {
    const from = this.drop(event)
    if (!from) return
    if (this.moved) {
      if (!from.pans && this.range) this.chooseRange(this.range.start, this.range.end)
      return
    }
    const { x, y } = this.place(event)
    const label = this.lanes.find((lane) => y >= lane.top && y < lane.top + LABEL)
    if (label && label.layers > FEW_LAYERS) return this.toggleLayers(label)
    const row = y - this.scroller.scrollTop >= this.head && this.rowAt(y)
    if (!row) return this.letGo()
    this.cursor = this.rows.indexOf(row)
    const tolerance = Math.ceil((1.5 / this.width) * (this.drawnEnd - this.drawnStart))
    this.choose(`event?place=${row.lane.lane}.${row.layer}&time=${Math.round(this.timeAt(x))}&tolerance=${tolerance}`)
      .then((found) => found || this.letGo())
  },

  drop(event) {
    const from = this.pointers.get(event.pointerId)
    this.pointers.delete(event.pointerId)
    this.scroller.classList.remove("dragging")
    return from
  },

  leave() {
    this.find(".tip").hidden = this.find(".pointer").hidden = true
    this.pointerX = undefined
  },

  pointAt(x) {
    const line = this.find(".pointer")
    this.pointerX = x
    line.hidden = x < 0 || x > this.width
    line.style.transform = `translateX(${Math.round(x)}px)`
    line.style.height = `${this.height}px`
  },

  // Keys work wherever nothing else has the focus while the pointer is over the timeline, as well as with the focus on it.
  onDocumentKey(event) {
    if (document.activeElement === document.body && this.pointerX !== undefined) {
      this.scroller.focus({ preventScroll: true })
      this.onKey(event)
    }
  },

  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return
    const held = { KeyW: () => this.zoom(0.82, this.pointerX), KeyS: () => this.zoom(1 / 0.82, this.pointerX),
      KeyA: () => this.pan(-0.08), KeyD: () => this.pan(0.08) }[event.code]
    const acts = {
      ArrowLeft: () => this.pan(-0.15), ArrowRight: () => this.pan(0.15), ArrowUp: () => this.moveCursor(-1),
      ArrowDown: () => this.moveCursor(1), "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2),
      Home: () => this.showWhole(), 0: () => this.showWhole(), Enter: () => this.fit(), f: () => this.fit(), ".": () => this.step(false),
      ",": () => this.step(true), Escape: () => this.escape(), m: () => this.mark(), v: () => this.chooseRange(this.start, this.end),
      "]": () => this.follow(), "[": () => this.followBack(), "?": () => this.toggleHelp(), "/": () => this.find(".words").focus(),
      e: () => this.rows[this.cursor] && this.toggleLayers(this.rows[this.cursor].lane),
    }
    const shifted = { ArrowLeft: () => this.moveEdge(-0.02), ArrowRight: () => this.moveEdge(0.02) }
    const act = held ?? (event.shiftKey ? shifted[event.key] : null) ?? acts[event.key.length === 1 ? event.key.toLowerCase() : event.key]
    if (!act) return
    event.preventDefault()
    event.stopPropagation()  // Streamlit has keys of its own
    if (!held) return act()
    if (this.held) return  // the key repeats: it moves already
    act()
    this.hold(act)
  },

  // A key that is held moves on with every frame.
  hold(act) {
    this.held = performance.now()
    const go = (now) => {
      if (!this.held) return
      if (now - this.held > HOLD_MS && !(this.moves = !this.moves)) act()
      requestAnimationFrame(go)
    }
    requestAnimationFrame(go)
  },

  release() { this.held = 0 },

  escape() {
    if (!this.find(".shortcuts").hidden) this.toggleHelp()
    else this.letGo()
  },

  moveEdge(share) {
    const range = this.range ?? this.chosen ?? { start: this.start, end: this.end }
    const end = this.axis.time(this.axis.drawn(range.end) + share * (this.drawnEnd - this.drawnStart))
    this.chooseRange(range.start, Math.max(end, range.start + 1))
  },

  hover(event, { x, y }) {
    const tip = this.find(".tip"), row = y - this.scroller.scrollTop >= this.head && this.rowAt(y)
    this.scroller.classList.toggle("edge", !!(this.range && this.edgeAt(x)))
    const content = row && this.tile?.rows.get(`${row.lane.lane}.${row.layer}`)
    const text = content ? tipText(content, this, x) : ""
    tip.hidden = !text
    if (!text) return
    tip.textContent = text
    tip.style.left = `${Math.min(event.clientX + 12, window.innerWidth - 240)}px`
    tip.style.top = `${event.clientY + 14}px`
  },
})
