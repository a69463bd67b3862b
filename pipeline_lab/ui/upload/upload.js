// Sends the chosen or dropped files one after another and notifies Python when all have arrived.
export default function ({ data, parentElement, setTriggerValue }) {
  const find = (name) => parentElement.querySelector(`.${name}`)
  const zone = find("zone"), bar = find("bar"), progress = find("progress"), message = find("message")
  const [files, folder, stop] = [find("files"), find("folder"), find("stop")]
  const sending = zone.sending ?? (zone.sending = { request: null, stopped: false, busy: false })
  find("limit").textContent = `At most ${data.limit_text} in total.`

  const say = (text, isProblem = false) => {
    message.textContent = text
    message.classList.toggle("problem", isProblem)
  }
  if (zone.opened !== data.opened) {  // the page shows the log now
    zone.opened = data.opened
    say("")
  }
  const show = (busy) => {
    sending.busy = busy
    bar.hidden = !busy
    zone.classList.toggle("busy", busy)
    for (const input of [files, folder]) input.disabled = busy
  }

  const ask = (method, url, body, onProgress) => new Promise((resolve, reject) => {
    const request = new XMLHttpRequest()
    sending.request = body ? request : null  // a request for an id runs to its end, so that the upload can be dropped
    request.open(method, url)
    request.upload.onprogress = (event) => onProgress?.(event.loaded)
    request.onload = () => {
      let answer = {}
      try { answer = JSON.parse(request.responseText) } catch { /* a proxy's page */ }
      if (request.status === 200) resolve(answer)
      else reject(new Error(answer.error ?? `The server refused the log (${request.status}).`))
    }
    request.onerror = () => reject(new Error("The connection was lost and nothing was saved; send the log again."))
    request.onabort = () => reject(new Error("Canceled; nothing was saved."))
    request.send(body)
  })

  const send = async (chosen, leftOut = []) => {
    if (!chosen.length || sending.busy) return
    const total = chosen.reduce((sum, one) => sum + one.file.size, 0)
    if (total > data.limit_bytes) return say(data.too_large, true)
    sending.stopped = false
    show(true)
    const start = performance.now()
    let done = 0, id = null
    const tell = (loaded) => {
      const seconds = (performance.now() - start) / 1000
      progress.value = total ? (done + loaded) / total : 1
      const rate = seconds > 0.5 ? `, ${size((done + loaded) / seconds)}/s` : ""
      say(`${size(done + loaded)} of ${size(total)}${rate}`)
    }
    try {
      tell(0)
      id = (await ask("POST", data.url)).id
      const goOn = () => { if (sending.stopped) throw new Error("Canceled; nothing was saved.") }
      for (const { file, path } of chosen) {
        goOn()
        await ask("PUT", `${data.url}/${id}/${path.split("/").map(encodeURIComponent).join("/")}`, file, tell)
        done += file.size
      }
      goOn()
      say("Received; opening.")
      setTriggerValue("uploaded", { id, left_out: leftOut })
    } catch (error) {
      say(error.message, !sending.stopped)
      if (id) fetch(`${data.url}/${id}`, { method: "DELETE" }).catch(() => {})
    } finally {
      show(false)
      files.value = folder.value = ""
    }
  }

  // Of a folder only files that can belong to a log are sent, not the checkpoints next to them.
  const part = new RegExp(`^(?:${data.part_of_a_log})$`)
  const ofLog = (found) => {
    const name = ({ path }) => path.split("/").pop()
    const parts = found.filter((one) => !one.path.includes("/") || part.test(name(one)))
    return parts.length ? [parts, found.filter((one) => !parts.includes(one)).map(name).slice(0, 200)] : [found]
  }
  const chosen = (input) => [...input.files].map((file) => ({ file, path: file.webkitRelativePath || file.name }))
  files.onchange = () => send(chosen(files))
  folder.onchange = () => send(...ofLog(chosen(folder)))
  stop.onclick = () => {
    sending.stopped = true
    say("Canceling.")
    sending.request?.abort()
  }
  zone.ondragover = (event) => { event.preventDefault(); zone.classList.add("over") }
  zone.ondragleave = () => zone.classList.remove("over")
  zone.ondrop = async (event) => {
    event.preventDefault()
    zone.classList.remove("over")
    const dropped = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry() ?? item.getAsFile())
    try {
      const found = (await Promise.all(dropped.filter(Boolean).map(walk))).flat()
      if (found.length) send(...ofLog(found))
      else say("The dropped items contain no file.", true)
    } catch {
      say("The browser could not read the dropped items; choose the files with the button.", true)
    }
  }
}

const size = (bytes) => bytes < 1e6 ? `${(bytes / 1e3).toFixed(0)} kB` : bytes < 1e9 ? `${(bytes / 1e6).toFixed(1)} MB`
  : `${(bytes / 1e9).toFixed(2)} GB`

// Lists the files of a dropped file or folder with their paths; a browser reads a folder a hundred entries at a time.
const walk = async (entry) => {
  if (entry instanceof File) return [{ file: entry, path: entry.name }]
  if (entry.isFile) {
    const file = await new Promise((resolve, reject) => entry.file(resolve, reject))
    return [{ file, path: entry.fullPath.slice(1) }]
  }
  const reader = entry.createReader(), found = []
  for (;;) {
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject))
    if (!some.length) break
    found.push(...some)
  }
  return (await Promise.all(found.map(walk))).flat()
}
