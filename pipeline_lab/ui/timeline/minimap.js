// The whole run in one strip: what the devices did, the view, the range and the marks; dragging moves or resizes the view.
const MINIMAP = 34, GRIP = 7

function paintMinimap(view) {
  const { minimap, width, overview, axis } = view, ratio = window.devicePixelRatio || 1
  if (minimap.width !== Math.round(width * ratio)) {
    minimap.width = Math.round(width * ratio)
    minimap.height = Math.round(MINIMAP * ratio)
    minimap.style.width = `${width}px`
    minimap.style.height = `${MINIMAP}px`
  }
  const pen = minimap.getContext("2d"), look = lookOf(view)
  pen.setTransform(ratio, 0, 0, ratio, 0, 0)
  pen.fillStyle = look.paper
  pen.fillRect(0, 0, width, MINIMAP)
  if (!overview) return
  const scale = width / (overview.drawnEnd - overview.drawnStart), x = (time) => (axis.drawn(time) - overview.drawnStart) * scale
  const height = (MINIMAP - 8) / Math.max(1, overview.rows.length)
  overview.rows.forEach((row, number) => {
    const y = 4 + number * height
    if (row.cells) paintCells(pen, row.cells, 0, width / row.cells.length, y, height - 1, look)
    else for (let at = 0; at < row.events.length; at += 4) {
      const start = row.events[at] + overview.start, left = x(start)
      pen.fillStyle = look.colors[row.events[at + 3]]
      pen.fillRect(left, y, Math.max(0.7, x(start + row.events[at + 1]) - left), height - 1)
    }
  })
  for (const one of axis.breaks) {
    const left = x(one.start), right = x(one.end)
    if (right - left < 2) continue
    pen.fillStyle = look.paper
    pen.fillRect(left, 0, right - left, MINIMAP)
    paintHatch(pen, left, right, 4, MINIMAP - 4, look)
  }
  const from = x(view.start), to = Math.max(x(view.end), from + 2)
  pen.globalAlpha = 0.62
  pen.fillStyle = look.paper
  pen.fillRect(0, 0, from, MINIMAP)
  pen.fillRect(to, 0, width - to, MINIMAP)
  pen.globalAlpha = 1
  pen.strokeStyle = pen.fillStyle = look.accent
  pen.lineWidth = 1.5
  pen.strokeRect(Math.max(1, from), 1, Math.min(width - 1, to) - Math.max(1, from), MINIMAP - 2)
  for (const edge of [from, to]) pen.fillRect(Math.min(Math.max(edge - 2, 0), width - 4), MINIMAP / 2 - 6, 4, 12)
  for (const one of [...view.marks, ...(view.range ? [view.range] : [])]) {
    pen.fillStyle = look.ink
    pen.fillRect(x(one.start), 0, Math.max(2, x(one.end) - x(one.start)), 3)
  }
}

Object.assign(Timeline.prototype, {
  listenToMinimap() {
    const map = this.minimap
    const drawnAt = (event) => {
      const first = this.axis.drawn(this.data.start), last = this.axis.drawn(this.data.end)
      return first + ((event.clientX - map.getBoundingClientRect().left) / this.width) * (last - first)
    }
    const grips = (event) => {
      const near = ((GRIP + (event.pointerType === "touch" ? 8 : 0)) / this.width) * (this.axis.drawn(this.data.end) - this.axis.drawn(this.data.start))
      const at = drawnAt(event)
      if (Math.abs(at - this.drawnStart) <= near) return "start"
      if (Math.abs(at - this.drawnEnd) <= near) return "end"
      return at > this.drawnStart && at < this.drawnEnd ? "move" : "new"
    }
    let drag = null
    map.addEventListener("mousedown", (event) => {  // the keys go on working
      event.preventDefault()
      this.scroller.focus({ preventScroll: true })
    })
    map.addEventListener("pointerdown", (event) => {
      if (event.button) return
      map.setPointerCapture(event.pointerId)
      drag = { kind: grips(event), at: drawnAt(event), start: this.drawnStart, end: this.drawnEnd, moved: false }
    })
    map.addEventListener("pointermove", (event) => {
      if (!drag) {
        map.style.cursor = { start: "ew-resize", end: "ew-resize", move: "grab", new: "crosshair" }[grips(event)]
        return
      }
      const at = drawnAt(event), by = at - drag.at
      drag.moved ||= Math.abs(by) * this.width > 3 * (this.axis.drawn(this.data.end) - this.axis.drawn(this.data.start))
      if (!drag.moved) return
      if (drag.kind === "move") this.setDrawn(drag.start + by, drag.end + by)
      else {
        const other = { start: drag.end, end: drag.start, new: drag.at }[drag.kind]
        this.setDrawn(Math.min(at, other), Math.max(at, other))
      }
    })
    map.addEventListener("pointerup", () => {
      if (drag && !drag.moved) {  // a click: the view's middle goes there
        const half = (drag.end - drag.start) / 2
        this.setDrawn(drag.at - half, drag.at + half)
      }
      drag = null
    })
    map.addEventListener("pointercancel", () => { drag = null })
  },
})
