// Lines over episodes or time, drawn as SVG, each with its numbers as a table.

const SVG = "http://www.w3.org/2000/svg";

function element(name, attributes, parent) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  parent?.append(made);
  return made;
}

export function compact(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size >= 1e6) return `${+(value / 1e6).toPrecision(3)}M`;
  if (size >= 1e4) return `${+(value / 1e3).toPrecision(3)}k`;
  return `${+value.toPrecision(4)}`;
}

export function duration(seconds) {
  if (seconds >= 7200) return `${+(seconds / 3600).toPrecision(3)} h`;
  if (seconds >= 120) return `${+(seconds / 60).toPrecision(3)} min`;
  return `${+seconds.toPrecision(3)} s`;
}

function ticks(top, count) {
  if (!(top > 0)) return [0];
  const raw = top / count;
  const magnitude = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((one) => one * magnitude).find((one) => one >= raw);
  return Array.from({ length: Math.floor(top / step + 1e-9) + 1 }, (_, place) => place * step);
}

// series: [{label, values, className}] over shared or own `x`; band: {x, low, high}
function draw(place, { series, band, xText, yLabel, xLabel, isLogarithmic }) {
  place.querySelector("svg")?.remove();
  const width = Math.max(place.clientWidth, 240);
  const height = 280;
  const right = width > 560 && series.length > 1 ? 132 : 14;
  const left = 46;
  const [top, bottom] = [26, height - 36];
  const svg = element("svg", { viewBox: `0 0 ${width} ${height}`, role: "img" });
  svg.setAttribute("aria-label", `${yLabel} over ${xLabel}: ${series.map((one) => `${one.label} ${compact(one.values.at(-1))}`).join(", ")}`);
  place.prepend(svg);
  const endX = Math.max(1e-9, ...series.map((one) => one.x.at(-1) ?? 0));
  const topY = Math.max(1, ...series.flatMap((one) => one.values), ...(band?.high ?? []));
  const floor = 0.7;
  const x = (value) => left + ((width - left - right) * value) / endX;
  const y = isLogarithmic
    ? (value) => bottom - ((bottom - top) * Math.log(Math.max(value, floor) / floor)) / Math.log((topY * 1.2) / floor)
    : (value) => bottom - ((bottom - top) * value) / (topY * 1.05);
  const marks = isLogarithmic
    ? Array.from({ length: Math.floor(Math.log10(topY)) + 1 }, (_, power) => 10 ** power)
    : ticks(topY, 5);
  for (const value of marks) {
    element("line", { class: "grid", x1: left, x2: width - right, y1: y(value), y2: y(value) }, svg);
    element("text", { x: left - 8, y: y(value) + 4, "text-anchor": "end" }, svg).textContent = compact(value);
  }
  const xs = ticks(endX, width > 560 ? 6 : 3);
  for (const [place_, value] of xs.entries()) {
    const anchor = place_ === 0 ? "start" : x(value) > width - right - 20 ? "end" : "middle";
    element("text", { x: x(value), y: bottom + 18, "text-anchor": anchor }, svg).textContent = xText(value);
  }
  element("text", { x: left, y: 12 }, svg).textContent = yLabel;
  element("text", { x: width - right, y: bottom + 33, "text-anchor": "end" }, svg).textContent = xLabel;
  if (band?.x.length) {
    const up = band.x.map((value, i) => `${x(value)},${y(band.high[i])}`);
    const down = band.x.map((value, i) => `${x(value)},${y(band.low[i])}`).reverse();
    element("polygon", { class: "band", points: [...up, ...down].join(" ") }, svg);
  }
  const labels = [];
  for (const one of series) {
    const points = one.values.map((value, i) => (value === null || (isLogarithmic && value < floor) ? null : `${x(one.x[i])},${y(value)}`));
    const path = points.reduce((text, point, i) => (point ? `${text}${i && points[i - 1] ? "L" : "M"}${point}` : text), "");
    element("path", { class: `line ${one.className}`, d: path || "M0,0" }, svg);
    if (one.values.length) labels.push({ at: y(one.values.at(-1)), text: one.label, className: one.className });
  }
  labels.sort((a, b) => b.at - a.at);
  if (right > 100) {
    let below = Infinity;
    for (const one of labels) {
      below = Math.min(one.at, below - 15);
      const text = element("text", { x: width - right + 8, y: below + 4 }, svg);
      text.textContent = one.text.length > 18 ? `${one.text.slice(0, 17)}…` : one.text;
      element("title", {}, text).textContent = one.text;
      text.setAttribute("class", one.className.replace("l", "s"));
    }
  }
  follow(svg, { series, x, y, endX, left, right, width, top, bottom, xText });
  return labels;
}

// a line under the pointer that tells the values there
function follow(svg, { series, endX, left, right, width, top, bottom, x, xText }) {
  const line = element("line", { class: "at", y1: top, y2: bottom, visibility: "hidden" }, svg);
  const said = element("text", { y: 12, "text-anchor": "end", x: width - right }, svg);
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const value = (((event.clientX - box.left) * (width / box.width) - left) / (width - left - right)) * endX;
    if (value < 0 || value > endX) return;
    line.setAttribute("x1", x(value));
    line.setAttribute("x2", x(value));
    line.setAttribute("visibility", "visible");
    const parts = series.map((one) => {
      const at = one.x.findLastIndex((place) => place <= value);
      return `${one.label} ${compact(one.values[Math.max(at, 0)])}`;
    });
    said.textContent = width > 560 ? `${xText(value)}: ${parts.join(" · ")}` : xText(value);
  });
  svg.addEventListener("pointerleave", () => {
    line.setAttribute("visibility", "hidden");
    said.textContent = "";
  });
}

function keys(place, series) {
  let list = place.querySelector(".keys");
  if (!list) {
    list = document.createElement("ul");
    list.className = "keys";
    place.append(list);
  }
  list.replaceChildren(
    ...series.map((one) => {
      const item = document.createElement("li");
      const svg = element("svg", { width: 18, height: 10, "aria-hidden": "true" }, item);
      element("line", { class: `line ${one.className}`, x1: 0, x2: 18, y1: 5, y2: 5 }, svg);
      item.append(` ${one.label} `);
      const last = document.createElement("span");
      last.className = "quiet";
      last.textContent = compact(one.values.at(-1));
      item.append(last);
      return item;
    }),
  );
}

function table(place, heads, rows) {
  let details = place.querySelector("details");
  if (!details) {
    details = document.createElement("details");
    const summary = document.createElement("summary");
    summary.textContent = "as a table";
    const region = document.createElement("div");
    region.className = "scroll";
    region.tabIndex = 0;
    region.setAttribute("role", "region");
    region.setAttribute("aria-label", "Numbers of the chart");
    details.append(summary, region);
    place.append(details);
  }
  const made = document.createElement("table");
  made.className = "list";
  const head = made.createTHead().insertRow();
  for (const name of heads) {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.className = "n";
    cell.textContent = name;
    head.append(cell);
  }
  const body = made.createTBody();
  for (const row of rows) {
    const line = body.insertRow();
    for (const value of row) {
      const cell = line.insertCell();
      cell.className = "n";
      cell.textContent = value;
    }
  }
  details.querySelector(".scroll").replaceChildren(made);
}

const thin = (count, most) => Array.from({ length: Math.min(count, most) }, (_, i) => Math.round((i * (count - 1)) / Math.max(Math.min(count, most) - 1, 1)));

async function load(address) {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error((await answer.json()).problem);
  return answer.json();
}

function empty(place, text) {
  const line = document.createElement("p");
  line.className = "quiet";
  line.textContent = text;
  place.replaceChildren(line);
}

// calls `redraw` with the chosen axis, now and whenever axis or width change
function choosing(place, redraw) {
  let axis = "episodes";
  const buttons = place.closest("section").querySelectorAll("[data-axis]");
  for (const button of buttons) {
    button.addEventListener("click", () => {
      axis = button.dataset.axis;
      for (const one of buttons) one.setAttribute("aria-pressed", String(one === button));
      redraw(axis);
    });
  }
  let width = place.clientWidth;
  new ResizeObserver(() => {
    if (place.clientWidth !== width) {
      width = place.clientWidth;
      redraw(axis);
    }
  }).observe(place);
  redraw(axis);
  return () => redraw(axis);
}

async function discoveryChart(place) {
  const data = await load(place.dataset.discovery);
  const redraw = (axis) => {
    if (!data.episodes.length) return empty(place, "Nothing has been run yet.");
    place.querySelector("p.quiet")?.remove();
    const x = data[axis];
    const series = [
      { label: "findings", values: data.findings, className: "l1" },
      { label: "distinct", values: data.distinct, className: "l2" },
      { label: "lineages", values: data.lineages, className: "l3" },
    ];
    if (data.random.length) series.push({ label: "random draws", values: data.random, className: "l4" });
    for (const one of series) one.x = x;
    const top = Math.max(1, ...data.findings);
    draw(place, {
      series,
      band: data.random.length ? { x, low: data.random_low, high: data.random_high } : null,
      isLogarithmic: top > 20,
      yLabel: "found so far",
      xLabel: axis === "seconds" ? "time" : "episodes",
      xText: axis === "seconds" ? duration : compact,
    });
    keys(place, series);
    const rows = thin(x.length, 40).map((i) => [data.episodes[i].toLocaleString("en"), duration(data.seconds[i]), ...series.map((one) => compact(one.values[i]))]);
    table(place, ["episodes", "time", ...series.map((one) => one.label)], rows);
  };
  const again = choosing(place, redraw);
  document.addEventListener("campaign", ({ detail: { point } }) => {
    const [episodes, seconds, findings, distinct] = point;
    const last = data.episodes.at(-1) ?? 0;
    if (episodes <= last) return;
    const rate = (name) => (last && data[name].length ? data[name].at(-1) / last : 0);
    const rates = ["random", "random_low", "random_high"].map((name) => [name, rate(name)]);
    data.episodes.push(episodes);
    data.seconds.push(seconds);
    data.findings.push(findings);
    data.distinct.push(distinct);
    data.lineages.push(data.lineages.at(-1) ?? 0);
    for (const [name, value] of rates) if (data.random.length || data[name].length) data[name].push(value * episodes);
    if (data.episodes.length > 1200) {
      for (const values of Object.values(data)) if (Array.isArray(values)) values.splice(0, values.length, ...values.filter((_, i) => i % 2 || i === values.length - 1));
    }
    again();
  });
}

async function speedChart(place) {
  const data = await load(place.dataset.speed);
  const x = [];
  const values = [];
  const chosen = thin(data.seconds.length, 120);
  for (let i = 1; i < chosen.length; i++) {
    const took = data.seconds[chosen[i]] - data.seconds[chosen[i - 1]];
    if (took <= 0) continue;
    x.push(data.seconds[chosen[i]]);
    values.push((data.episodes[chosen[i]] - data.episodes[chosen[i - 1]]) / took);
  }
  if (!x.length) return empty(place, "Not enough batches yet.");
  const series = [{ label: "episodes per second", x, values, className: "l1" }];
  choosing(place, () => {
    draw(place, { series, yLabel: "episodes per second", xLabel: "time", xText: duration });
    table(place, ["time", "episodes per second"], thin(x.length, 40).map((i) => [duration(x[i]), compact(values[i])]));
  });
}

async function compareChart(place) {
  const named = [...place.querySelectorAll("[data-figure]")].slice(0, 7);
  const loaded = await Promise.all(named.map((one) => load(one.dataset.figure).catch(() => null)));
  const curves = loaded.map((data, i) => ({ data, label: named[i].dataset.name, className: `l${i + 1}` })).filter((one) => one.data?.episodes.length);
  if (!curves.length) return empty(place, "Nothing has been run yet.");
  choosing(place, (axis) => {
    const series = curves.map((one) => ({ ...one, x: one.data[axis], values: one.data.distinct }));
    draw(place, {
      series,
      yLabel: "distinct findings",
      xLabel: axis === "seconds" ? "time" : "episodes",
      xText: axis === "seconds" ? duration : compact,
    });
    keys(place, series);
  });
}

async function coverageChart(place) {
  const { campaigns } = await load(place.dataset.coverage);
  const series = campaigns.slice(0, 7).map((one, i) => ({
    label: one.name,
    x: one.curve.episodes,
    values: one.curve.behaviours,
    className: i === campaigns.length - 1 ? "l4" : `l${i < 3 ? i + 1 : i + 2}`,
  }));
  choosing(place, () => {
    draw(place, { series, yLabel: "behaviours", xLabel: "episodes", xText: compact });
    keys(place, series);
  });
}

// points as short strokes of one path: thousands of circles would be slow
async function statesChart(place) {
  const { campaigns, axes } = await load(place.dataset.states);
  const shown = campaigns.slice(0, 7);
  const xs = shown.flatMap((one) => one.xs);
  const ys = shown.flatMap((one) => one.ys);
  if (!xs.length) return empty(place, "No states are stored.");
  const range = (values) => values.reduce(([low, high], one) => [Math.min(low, one), Math.max(high, one)], [Infinity, -Infinity]);
  const [[x0, x1], [y0, y1]] = [range(xs), range(ys)];
  choosing(place, () => {
    place.querySelector("svg")?.remove();
    const width = Math.max(place.clientWidth, 240);
    const svg = element("svg", { viewBox: `0 0 ${width} 280`, role: "img", "aria-label": `Visited states: ${axes.join(" against ")}` });
    place.prepend(svg);
    const x = (value) => 8 + ((width - 16) * (value - x0)) / Math.max(x1 - x0, 1e-9);
    const y = (value) => 258 - (236 * (value - y0)) / Math.max(y1 - y0, 1e-9);
    const colours = shown.map((_, i) => (i === campaigns.length - 1 ? "l4" : `l${i < 3 ? i + 1 : i + 2}`));
    for (const [i, one] of [...shown.entries()].reverse()) {
      const points = one.xs.map((value, j) => `M${x(value).toFixed(1)},${y(one.ys[j]).toFixed(1)}h0`).join("");
      if (points) element("path", { class: `points ${colours[i]}`, d: points }, svg);
      const crosses = one.crash_xs.map((value, j) => `M${(x(value) - 3).toFixed(1)},${(y(one.crash_ys[j]) - 3).toFixed(1)}l6,6m0,-6l-6,6`).join("");
      if (crosses) element("path", { class: `crosses ${colours[i]}`, d: crosses }, svg);
    }
    const fitting = (text) => (text.length * 7 > width ? `${text.slice(0, Math.floor(width / 7) - 1)}…` : text);
    element("text", { x: 4, y: 12 }, svg).textContent = fitting(axes[1]);
    element("text", { x: width - 4, y: 276, "text-anchor": "end" }, svg).textContent = fitting(axes[0]);
    keys(place, shown.map((one, i) => ({ label: one.name, values: [one.used], className: colours[i] })));
  });
}

for (const [name, make] of [["coverage", coverageChart], ["states", statesChart], ["discovery", discoveryChart], ["speed", speedChart], ["compare", compareChart]]) {
  for (const place of document.querySelectorAll(`[data-${name}]`)) {
    make(place).catch((error) => empty(place, `This figure cannot be drawn: ${error.message}`));
  }
}
