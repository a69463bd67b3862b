// What stands around the picture: the selection's description, its sums, the marks, the matches of a search, the keys.
Object.assign(Timeline.prototype, {
  describe(found) {
    this.described = found
    const { title, facts, sums, meanwhile, section, causes } = found
    const list = element("dl")
    for (const [name, value] of facts) list.append(element("dt", name), element("dd", value))
    const parts = [element("h3", title)]
    if (sums?.rows.length) parts.push(this.strip(sums.rows))
    parts.push(list)
    if (sums?.rows.length) parts.push(this.sumTable(sums))
    if (meanwhile?.rows.length) parts.push(operations(meanwhile.rows))
    if (meanwhile?.note) parts.push(element("p", meanwhile.note, "help"))
    const actions = element("div", "", "actions")
    actions.append(action("Zoom to it", () => this.fit()), action("Mark", () => this.mark()))
    if (causes?.length) actions.append(action("Go to the cause", () => this.follow()))
    if (this.cameFrom?.length) actions.append(action("Back to the wait", () => this.followBack()))
    if (section && this.data.sections) actions.append(action(`Back to ${section}`, () => this.goBack(section)))
    this.find(".details").replaceChildren(...parts, actions)
  },

  // The parts of a range side by side, to scale.
  strip(rows) {
    const strip = element("div", "", "strip")
    strip.setAttribute("role", "img")
    strip.setAttribute("aria-label", rows.map((row) => `${row.name} ${row.share}`).join(", "))
    for (const row of rows) {
      const part = element("span", row.part > 0.12 ? `${row.name} ${row.share}` : "")
      part.title = `${row.name}: ${row.time}, ${row.share}`
      part.style.cssText = `flex: ${row.part} 0 0; background: ${this.colors[row.class]}; color: ${inkOn(this.colors[row.class])}`
      strip.append(part)
    }
    return strip
  },

  sumTable({ caption, rows }) {
    const made = table(caption, [["Cause", ""], ["Time", "number"], ["Share", "number"], ["Stretches", "number"]])
    made.append(...rows.map((row) => {
      const line = element("tr"), name = element("td")
      name.append(swatch(this.colors[row.class]), row.name)
      line.append(name, ...["time", "share", "calls"].map((key) => element("td", row[key], "number")))
      return line
    }))
    return made
  },

  showMarks() {
    const list = this.find(".marks")
    list.hidden = !this.marks.length
    list.replaceChildren(...this.marks.map((one, number) => {
      const item = element("li"), name = letter(number)
      const text = one.end > one.start ? `${name}: ${duration(one.end - one.start)} from ${duration(one.start)}` : `${name}: ${duration(one.start)}`
      const remove = action("×", () => { this.choosing(one); this.mark() })
      remove.setAttribute("aria-label", `Remove mark ${name}`)
      item.append(action(text, () => {
        this.choosing(one)
        if (one.end > one.start) this.fit()
        else this.pan((this.xOf(one.start) / this.width) - 0.5)
      }), remove)
      return item
    }))
  },

  choosing({ start, end }) {
    if (end > start) this.chooseRange(start, end)
    else Object.assign(this, { range: null, chosen: { start, end } })
  },

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
        if (one.pick) return this.choose(`event?pick=${one.pick}`, true)
        this.markNames([one.number])
        this.jumpToMatch(false)
      }
      const item = element("li")
      item.append(button)
      return item
    }))
    if (!found.shown.length && words.trim()) list.append(element("li", "No event names match."))
    else if (found.names.length > found.shown.length) list.append(element("li", `${found.names.length - found.shown.length} more names.`))
    this.markNames(found.names)
  },

  markNames(names) {
    this.marked = names.slice(0, 100)
    for (const name of [".previous", ".next"]) this.find(name).disabled = !names.length
    this.ask()
  },

  jumpToMatch(back) {
    if (!this.marked.length) return
    const time = this.chosen ? this.chosen.start : back ? this.end : this.start
    this.choose(`next?marked=${this.marked.join(",")}&time=${Math.round(time)}&back=${back ? 1 : 0}`)
  },

  // From a wait to the event that caused it, and back to where one came from.
  async follow() {
    const from = this.chosen, [cause] = from?.causes ?? []
    if (!cause) return this.say("Choose an input wait, or an idle gap for input, to follow it to its cause.")
    this.cameFrom = [...(this.cameFrom ?? []), from.pick]
    await this.choose(`event?pick=${cause.pick}`)
  },

  async followBack() {
    const pick = this.cameFrom?.pop()
    if (pick) await this.choose(`event?pick=${encodeURIComponent(pick)}`)
  },

  toggleHelp() {
    const panel = this.find(".shortcuts"), opens = panel.hidden
    panel.hidden = !opens
    this.find(".help-button").setAttribute("aria-expanded", opens)
    if (!opens || panel.childElementCount) return
    const list = element("dl")
    for (const [keys, does] of KEYS) {
      const name = element("dt")
      for (const key of keys.split(" ")) name.append(element("kbd", key), " ")
      list.append(name, element("dd", does))
    }
    panel.replaceChildren(element("p", "Click the timeline or point at it, then:", "help"), list)
  },
})

function operations(rows) {
  const made = table("Host operations in this time range, by their own time",
    [["Operation", ""], ["Thread with most of it", "thread"], ["Time", "number"], ["Share", "number"], ["Calls", "number"]])
  made.append(...rows.map((row) => {
    const line = element("tr")
    line.append(element("td", row.name), element("td", row.thread, "thread"),
      ...["time", "share", "calls"].map((name) => element("td", row[name], "number")))
    return line
  }))
  return made
}

function table(caption, columns) {
  const made = element("table"), head = element("tr")
  for (const [text, kind] of columns) {
    const cell = element("th", text, kind)
    cell.scope = "col"
    head.append(cell)
  }
  made.append(element("caption", caption), head)
  return made
}

const letter = (number) => String.fromCharCode(65 + (number % 26))

const element = (tag, text = "", className = "") => {
  const made = document.createElement(tag)
  if (text) made.textContent = text
  if (className) made.className = className
  return made
}

const swatch = (color) => {
  const made = element("i", "", "swatch")
  made.style.background = color
  return made
}

const action = (text, act) => {
  const made = element("button", text)
  made.type = "button"
  made.onclick = act
  return made
}
