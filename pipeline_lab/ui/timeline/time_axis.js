// Where moments are drawn: stretches that were not recorded are collapsed to `room` ns each. "Drawn" times are those of that axis.
class TimeAxis {
  constructor(breaks, room) {
    let saved = 0
    this.breaks = breaks.map(([start, length]) => {
      const one = { start, end: start + length, drawn: start - saved, saved }
      saved += length - room
      return one
    })
    this.room = room
  }

  // The last break that begins, on the axis that `by` names, no later than a moment.
  before(time, by) {
    let low = 0, high = this.breaks.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.breaks[middle][by] <= time) low = middle + 1
      else high = middle
    }
    return this.breaks[low - 1]
  }

  drawn(time) {
    const one = this.before(time, "start")
    if (!one) return time
    const length = one.end - one.start
    if (time < one.end) return one.drawn + ((time - one.start) / length) * this.room
    return time - one.saved - length + this.room
  }

  time(drawn) {
    const one = this.before(drawn, "drawn")
    if (!one) return drawn
    const length = one.end - one.start
    if (drawn < one.drawn + this.room) return one.start + ((drawn - one.drawn) / this.room) * length
    return drawn + one.saved + length - this.room
  }

  // The breaks that touch a stretch of time.
  within(start, end) {
    const first = this.breaks.indexOf(this.before(start, "start"))
    const found = []
    for (let at = Math.max(0, first); at < this.breaks.length && this.breaks[at].start < end; at++) {
      if (this.breaks[at].end > start) found.push(this.breaks[at])
    }
    return found
  }
}

// Moments for the axis' labels, at least `apart` pixels from each other, none of them where nothing was recorded.
function ticks(view) {
  const apart = 90, rough = ((view.drawnEnd - view.drawnStart) / view.width) * 110
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = Math.max(1, [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough))
  const found = []
  let from = view.start, last = -Infinity
  for (const { start, end } of [...view.axis.within(view.start, view.end), { start: view.end, end: view.end }]) {
    for (let at = Math.ceil(from / step) * step; at <= start; at += step) {
      const x = view.xOf(at)
      if (x - last < apart) continue
      found.push({ at, x })
      last = x
    }
    from = end
  }
  return { step, found }
}

const SECOND = 1e9, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE
const UNITS = [[SECOND, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]]
const inTwo = (number) => String(number).padStart(2, "0")

const duration = (ns) => {
  const seconds = Math.round(ns / SECOND), minutes = Math.floor(seconds / 60)
  if (ns >= HOUR) return `${Math.floor(minutes / 60)} h ${inTwo(minutes % 60)} min`
  if (ns >= 2 * MINUTE) return `${minutes} min ${inTwo(seconds % 60)} s`
  const [size, unit] = UNITS.find(([one]) => Math.abs(ns) >= one) ?? [1, "ns"]
  return `${+(ns / size).toPrecision(Math.abs(ns / size) >= 100 ? Math.ceil(Math.log10(Math.abs(ns / size) + 1)) : 3)} ${unit}`
}

// A moment on the axis, with as many digits as the distance of its marks needs; from an hour on as h:mm:ss.
const moment = (ns, step) => {
  const digits = (size) => Math.max(0, Math.ceil(Math.log10(size / step) - 1e-9))
  if (ns >= HOUR) {
    const minutes = Math.floor(ns / MINUTE), seconds = ((ns - minutes * MINUTE) / SECOND).toFixed(digits(SECOND))
    return `${Math.floor(minutes / 60)}:${inTwo(minutes % 60)}:${seconds.replace(/^\d(?!\d)/, "0$&")}`
  }
  const [size, unit] = UNITS.find(([one]) => Math.abs(ns) >= one) ?? [1, "ns"]
  return `${(ns / size).toFixed(digits(size))} ${unit}`
}
