// What all pages have: live numbers, and buttons that copy a command.

const campaign = document.body.dataset.campaign;
const all = document.querySelector("[data-live-all]");
const notice = document.querySelector("[data-notice]");

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function say(text) {
  notice.textContent = text;
  notice.hidden = !text;
}

function show(root, numbers) {
  for (const element of root.querySelectorAll("[data-live]")) {
    const text = numbers.texts?.[element.dataset.live];
    if (text !== undefined) setText(element, text);
  }
  const state = root.querySelector("[data-live-state]");
  if (state && numbers.state_text) {
    setText(state, numbers.state_text);
    state.className = `state ${numbers.state}`;
  }
}

function heard(news) {
  for (const [slug, numbers] of Object.entries(news)) {
    if (slug === campaign) {
      if (numbers.state === "gone") {
        say(`This campaign cannot be read any more: ${numbers.problem}. What you see is what was there before.`);
        continue;
      }
      if (document.body.dataset.instance !== numbers.instance) {
        say("Another campaign is in this folder now: load the page again.");
        continue;
      }
      say("");
      show(document, numbers);
      document.dispatchEvent(new CustomEvent("campaign", { detail: numbers }));
    } else if (all) {
      const row = [...all.querySelectorAll("[data-row]")].find((one) => one.dataset.row === slug);
      if (row && numbers.texts) show(row, numbers);
    }
  }
}

let source = null;
function listen() {
  if (source || document.hidden || !(campaign || all)) return;
  source = new EventSource(campaign ? `/events?campaign=${encodeURIComponent(campaign)}` : "/events");
  source.onmessage = (event) => heard(JSON.parse(event.data));
}
function rest() {
  source?.close();
  source = null;
}
// a browser opens six connections to a server at most, so pages that nobody sees give theirs back
document.addEventListener("visibilitychange", () => (document.hidden ? rest() : listen()));
addEventListener("pagehide", rest);
addEventListener("pageshow", listen);
listen();

for (const button of document.querySelectorAll("[data-copy]")) {
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
      button.textContent = "Copied";
    } catch {
      // without a secure connection there is no clipboard: select the text instead
      const range = document.createRange();
      range.selectNodeContents(button.previousElementSibling);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      button.textContent = "Selected";
    }
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
}

for (const select of document.querySelectorAll(".filter select")) {
  select.addEventListener("change", () => select.form.requestSubmit());
}
