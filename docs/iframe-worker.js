// The search runs in a worker, which a browser refuses to start from a file. There, a hidden frame takes its place.
if (location.protocol === "file:") {
  window.Worker = class IFrameWorker extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.append(frame)
      this.inside = frame.contentWindow
      const page = frame.contentDocument
      page.open()
      page.write("<!doctype html><body></body>")
      page.close()
      this.inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
      this.started = new Promise(resolve => {
        const script = page.createElement("script")
        script.src = url
        script.onload = resolve
        page.body.append(script)
      })
    }

    postMessage(data) {
      this.started.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })))
    }
  }
}
