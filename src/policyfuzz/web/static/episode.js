// One finding: asks for its film, and moves strips of its numbers with it.

const SVG = "http://www.w3.org/2000/svg";
const card = document.querySelector("[data-episode]");
const address = card.dataset.episode;

function element(name, attributes, parent) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  parent?.append(made);
  return made;
}

async function untilDone(progress) {
  const words = { waiting: "Waiting for another film …", working: "The episode is being run again …" };
  for (;;) {
    const answer = await fetch(`${address}/episode`);
    const found = await answer.json();
    if (!answer.ok || !words[found.state]) break;
    progress.textContent = words[found.state];
    await new Promise((resolve) => setTimeout(resolve, 700));
  }
  location.reload();
}

const button = card.querySelector("[data-film-button]");
const progress = card.querySelector("[data-progress]");
button?.addEventListener("click", async () => {
  button.disabled = true;
  progress.textContent = "The episode is being run again …";
  const answer = await fetch(`${address}/film`, { method: "POST", headers: { "X-PolicyFuzz": "1" } });
  const told = await answer.json();
  if (answer.ok) return untilDone(progress);
  progress.textContent = told.problem;
  button.disabled = false;
});
if (progress && ["waiting", "working"].includes(card.dataset.state)) untilDone(progress);

function text(value) {
  return value === null || value === undefined ? "–" : `${+value.toPrecision(4)}`;
}

function path(values, x, y, isHeld) {
  let made = "";
  let before = null;
  values.forEach((value, step) => {
    if (value !== null) {
      if (before === null) made += `M${x(step)},${y(value)}`;
      else made += isHeld ? `V${y(value)}H${x(step)}` : `L${x(step)},${y(value)}`;
    }
    before = value;
  });
  return made || "M0,0";
}

function strip(panel, episode, last) {
  const box = document.createElement("div");
  box.className = "strip";
  const title = document.createElement("h3");
  const now = document.createElement("span");
  const name = document.createElement("b");
  name.textContent = name.title = panel.name;
  title.append(name, now);
  const svg = element("svg", { viewBox: "0 0 300 74", preserveAspectRatio: "none", "aria-hidden": "true" });
  box.append(title, svg);
  const every = [panel.policy, panel.witness, panel.low, panel.high].flatMap((one) => (one ?? []).slice(0, last + 1)).filter((one) => one !== null);
  let [low, high] = [Math.min(...every), Math.max(...every)];
  if (!(high > low)) [low, high] = [low - 1, low + 1];
  const x = (step) => (300 * step) / Math.max(last, 1);
  const y = (value) => 70 - (66 * (value - low)) / (high - low);
  element("line", { class: "baseline", x1: 0, x2: 300, y1: 73.5, y2: 73.5 }, svg);
  if (panel.low && panel.high) {
    const steps = [...panel.low.keys()].filter((step) => step <= last && panel.low[step] !== null && panel.high[step] !== null);
    const points = [...steps.map((step) => `${x(step)},${y(panel.high[step])}`), ...steps.reverse().map((step) => `${x(step)},${y(panel.low[step])}`)];
    element("polygon", { class: "band", points: points.join(" ") }, svg);
  }
  if (panel.witness) element("path", { class: "witness", d: path(panel.witness.slice(0, last + 1), x, y, panel.is_held) }, svg);
  element("path", { class: "policy", d: path(panel.policy.slice(0, last + 1), x, y, panel.is_held) }, svg);
  for (const [step, name] of [[episode.last_chance, "chanceline"], [episode.crash_step, "crashline"]]) {
    if (step !== null) element("line", { class: name, x1: x(step), x2: x(step), y1: 0, y2: 74 }, svg);
  }
  const head = element("line", { class: "head", y1: 0, y2: 74 }, svg);
  return {
    box,
    svg,
    at(step) {
      head.setAttribute("x1", x(step));
      head.setAttribute("x2", x(step));
      const value = panel.policy[Math.min(step, panel.policy.length - 1)];
      now.textContent = panel.choices[Math.round(value)] ?? text(value);
    },
  };
}

function legend(place, episode) {
  const keys = [["policy", "policy"]];
  if (episode.witness) keys.push(["witness", episode.witness]);
  if (episode.panels.some((one) => one.low)) keys.push(["bandkey", "where nine of ten passing episodes stay"]);
  if (episode.last_chance !== null) keys.push(["chanceline", `point of no return, step ${episode.last_chance}`]);
  if (episode.crash_step !== null) keys.push(["crashline", `crash, step ${episode.crash_step}`]);
  for (const [name, label] of keys) {
    const item = document.createElement("span");
    const wrap = element("svg", { width: 20, height: 10, "aria-hidden": "true", class: "strip" }, item);
    if (name === "bandkey") element("rect", { width: 20, height: 10, class: "band" }, wrap);
    else element("line", { class: name, x1: 0, x2: 20, y1: 5, y2: 5 }, wrap);
    item.append(label);
    place.append(item);
  }
}

async function play() {
  const answer = await fetch(`${address}/episode`);
  if (!answer.ok) return;
  const { episode } = await answer.json();
  const film = card.querySelector("[data-film]");
  const slider = card.querySelector("[data-step]");
  const said = card.querySelector("[data-step-text]");
  const toggle = card.querySelector("[data-play]");
  const last = episode.frames.at(-1) ?? episode.steps;
  const strips = episode.panels.map((panel) => strip(panel, episode, last));
  legend(card.querySelector("[data-legend]"), episode);
  card.querySelector("[data-strips]").append(...strips.map((one) => one.box));
  card.querySelector("[data-controls]").hidden = false;
  slider.max = last;

  function show(step) {
    slider.value = step;
    const marks = [];
    if (episode.crash_step !== null && step >= episode.crash_step) marks.push("crashed");
    else if (episode.last_chance !== null && step >= episode.last_chance) marks.push("too late");
    said.textContent = [`${step} of ${last}`, ...marks].join(", ");
    for (const one of strips) one.at(step);
  }
  const frameOf = (step) => Math.max(episode.frames.indexOf(step), 0);
  function seek(step) {
    show(step);
    if (film) film.currentTime = (frameOf(step) + 0.5) / episode.rate;
  }
  slider.addEventListener("input", () => {
    film?.pause();
    stop();
    seek(Number(slider.value));
  });
  for (const one of strips) {
    one.svg.addEventListener("click", (event) => {
      const box = one.svg.getBoundingClientRect();
      film?.pause();
      stop();
      seek(Math.round(((event.clientX - box.left) / box.width) * last));
    });
  }
  // without a film that tells its time, the strips have a clock of their own
  let timer = null;
  function stop() {
    clearInterval(timer);
    timer = null;
    toggle.textContent = film && !film.paused ? "Pause" : "Play";
  }
  toggle.addEventListener("click", () => {
    if (film) return film.paused ? film.play() : film.pause();
    if (timer) return stop();
    let frame = Number(slider.value) >= last ? 0 : frameOf(Number(slider.value));
    timer = setInterval(() => {
      if (frame >= episode.frames.length) return stop();
      show(episode.frames[frame++]);
    }, 1000 / episode.rate);
    toggle.textContent = "Pause";
  });
  if (film) {
    film.addEventListener("play", () => (toggle.textContent = "Pause"));
    film.addEventListener("pause", () => (toggle.textContent = "Play"));
    film.addEventListener("ended", () => (toggle.textContent = "Play again"));
    const tick = () => {
      if (!film.paused) show(episode.frames[Math.min(Math.floor(film.currentTime * episode.rate), episode.frames.length - 1)]);
      requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  }
  seek(0);
}

if (card.dataset.state === "done") play();
