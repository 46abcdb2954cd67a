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

// what changes rarely comes from the page itself, again and again while it changes
const refreshed = document.querySelectorAll("[data-refresh]");
let shownState = null;
let refreshedAt = performance.now();
async function refresh() {
  refreshedAt = performance.now();
  const answer = await fetch(location.href);
  if (!answer.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const part of refreshed) {
    const other = page.querySelector(`[data-refresh="${part.dataset.refresh}"]`);
    if (other && other.innerHTML !== part.innerHTML && !part.contains(document.activeElement)) {
      part.replaceChildren(...document.adoptNode(other).childNodes);
    }
  }
}
if (refreshed.length) {
  document.addEventListener("campaign", ({ detail }) => {
    const state = `${detail.state} ${detail.texts.findings}`;
    const isOld = performance.now() - refreshedAt > 5000 || !detail.is_running;
    if (shownState !== null && state !== shownState && isOld) refresh();
    if (shownState === null || isOld) shownState = state;
  });
}

// a list stays as it is while somebody reads it
const newer = document.querySelector("[data-newer]");
if (newer) {
  let listed = null;
  document.addEventListener("campaign", ({ detail }) => {
    listed ??= detail.texts.findings;
    newer.hidden = detail.texts.findings === listed;
  });
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

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (button) {
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
  }
});

for (const select of document.querySelectorAll(".filter select")) {
  select.addEventListener("change", () => select.form.requestSubmit());
}

// on a telephone the tabs scroll, and the present one may be out of sight
const tab = document.querySelector(".tabs [aria-current]");
if (tab) {
  const { left, right } = tab.getBoundingClientRect();
  if (left < 0 || right > innerWidth) tab.parentElement.scrollLeft += left - (innerWidth - tab.offsetWidth) / 2;
}
