/* Pages that are opened as files may not start a worker, so the search of the site runs in a frame that is not shown.
   The plugin `offline` of mkdocs-material loads a script for this from another server, unless one with this name is set. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inside = frame.contentWindow;
      // what the script of the worker calls, and what the page calls
      inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", {data}));
      this.loaded = new Promise((done, failed) => {
        const script = inside.document.createElement("script");
        script.src = address;
        script.onload = () => done(inside);
        script.onerror = () => failed(new Error(`${address} was not loaded`));
        inside.document.body.append(script);
      });
    }

    postMessage(data) {
      this.loaded.then(inside => inside.dispatchEvent(new MessageEvent("message", {data})));
    }
  };
}
