/* Browsers start no worker for a page that was opened from disk, and the search of the site runs in one. There, and
   only there, run the script in a hidden frame instead. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      this.waiting = [];
      const receive = (data) => {
        const message = new MessageEvent("message", { data });
        this.dispatchEvent(message);
        this.onmessage?.(message);
      };
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.title = "search";
      document.body.append(frame);
      this.inside = frame.contentWindow;
      this.inside.postMessage = receive;
      this.inside.importScripts = (...addresses) =>
        Promise.all(addresses.map((one) => this.load(frame.contentDocument, one)));
      this.load(frame.contentDocument, address).then(() => {
        this.isReady = true;
        this.waiting.splice(0).forEach((data) => this.postMessage(data));
      });
    }

    load(page, address) {
      return new Promise((done, failed) => {
        const script = page.createElement("script");
        script.src = new URL(address, location.href).href;
        script.onload = done;
        script.onerror = failed;
        page.head.append(script);
      });
    }

    postMessage(data) {
      if (this.isReady) this.inside.dispatchEvent(new this.inside.MessageEvent("message", { data }));
      else this.waiting.push(data);
    }

    terminate() {
      this.inside.frameElement.remove();
    }
  };
}
