// Findings as points on a canvas: drag to move, wheel or pinch to zoom, click or Enter to open a finding.

const card = document.querySelector("[data-map]");

if (card) {
  const canvas = card.querySelector("canvas");
  const says = card.querySelector("[data-says]");
  const context = canvas.getContext("2d");
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const fallback = "--c1";
  let maps = null;
  let map = null;
  let view = { x: 0, y: 0, size: 1 }; // the middle of what is shown, and units of the map per pixel
  let picked = -1;

  function fit() {
    const xs = [...map.x, ...map.corpus_x];
    const ys = [...map.y, ...map.corpus_y];
    const range = (values) => values.reduce(([low, high], one) => [Math.min(low, one), Math.max(high, one)], [Infinity, -Infinity]);
    const [x0, x1] = range(xs);
    const [y0, y1] = range(ys);
    view = {
      x: (x0 + x1) / 2,
      y: (y0 + y1) / 2,
      sizeX: Math.max(x1 - x0, 1e-9) / Math.max(canvas.clientWidth - 48, 50),
      sizeY: Math.max(y1 - y0, 1e-9) / Math.max(canvas.clientHeight - 64, 50),
    };
  }

  const toPixel = (x, y) => [
    canvas.clientWidth / 2 + (x - view.x) / view.sizeX,
    canvas.clientHeight / 2 - (y - view.y) / view.sizeY,
  ];

  function draw() {
    const ratio = devicePixelRatio || 1;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    context.fillStyle = colour("--band");
    map.corpus_x.forEach((x, i) => {
      const [a, b] = toPixel(x, map.corpus_y[i]);
      context.fillRect(a - 1, b - 1, 2, 2);
    });
    const usual = colour(fallback);
    // the style knows shades of the first modes for light and dark
    const shades = Object.fromEntries(Object.entries(maps.colours).map(([mode, fill]) => [mode, colour(`--m${mode}`) || fill]));
    map.x.forEach((x, i) => {
      const [a, b] = toPixel(x, map.y[i]);
      if (a < -5 || b < -5 || a > width + 5 || b > height + 5) return;
      context.fillStyle = shades[map.modes[i]] ?? usual;
      context.globalAlpha = 0.8;
      context.beginPath();
      context.arc(a, b, 3.6, 0, 7);
      context.fill();
    });
    context.globalAlpha = 1;
    context.fillStyle = colour("--quiet");
    context.font = "12px system-ui, sans-serif";
    context.fillText(map.axes[1].label.slice(0, 90), 10, 18, width - 20);
    context.textAlign = "right";
    context.fillText(map.axes[0].label.slice(0, 90), width - 10, height - 10, width - 20);
    context.textAlign = "left";
    if (picked >= 0) {
      const [a, b] = toPixel(map.x[picked], map.y[picked]);
      context.strokeStyle = colour("--ink");
      context.lineWidth = 2;
      context.beginPath();
      context.arc(a, b, 8, 0, 7);
      context.stroke();
    }
  }

  function pick(index) {
    picked = index;
    if (index < 0) {
      const shown = `${map.numbers.length.toLocaleString("en")} of ${map.findings.toLocaleString("en")} findings`;
      says.textContent = map.corpus_x.length ? `${shown}, over the corpus in grey` : shown;
    } else {
      const mode = map.modes[index] ? `, mode M${map.modes[index]}` : "";
      const link = document.createElement("a");
      link.href = card.dataset.findings + map.numbers[index];
      link.textContent = `finding ${map.numbers[index]}`;
      says.replaceChildren(link, mode);
    }
    draw();
  }

  function nearest(px, py, most) {
    let best = -1;
    let least = most * most;
    for (let i = 0; i < map.x.length; i++) {
      const [a, b] = toPixel(map.x[i], map.y[i]);
      const distance = (a - px) ** 2 + (b - py) ** 2;
      if (distance < least) [best, least] = [i, distance];
    }
    return best;
  }

  const open = (index) => index >= 0 && location.assign(card.dataset.findings + map.numbers[index]);

  function zoom(factor, px = canvas.clientWidth / 2, py = canvas.clientHeight / 2) {
    const [dx, dy] = [px - canvas.clientWidth / 2, canvas.clientHeight / 2 - py];
    view.x += dx * view.sizeX * (1 - factor);
    view.y += dy * view.sizeY * (1 - factor);
    view.sizeX *= factor;
    view.sizeY *= factor;
    draw();
  }

  function move(dx, dy) {
    view.x -= dx * view.sizeX;
    view.y += dy * view.sizeY;
    draw();
  }

  const pointers = new Map();
  let hasMoved = false;
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, [event.offsetX, event.offsetY]);
    hasMoved = false;
  });
  canvas.addEventListener("pointermove", (event) => {
    const before = pointers.get(event.pointerId);
    if (!before) {
      const index = nearest(event.offsetX, event.offsetY, 14);
      if (index !== picked && index >= 0) pick(index);
      return;
    }
    const [dx, dy] = [event.offsetX - before[0], event.offsetY - before[1]];
    if (pointers.size === 2) {
      const other = [...pointers].find(([id]) => id !== event.pointerId)[1];
      const was = Math.hypot(before[0] - other[0], before[1] - other[1]);
      const is = Math.hypot(event.offsetX - other[0], event.offsetY - other[1]);
      if (was > 0 && is > 0) zoom(was / is, other[0], other[1]);
      hasMoved = true;
    } else if (hasMoved || Math.hypot(dx, dy) > 4) {
      hasMoved = true;
      move(dx, dy);
    } else return;
    pointers.set(event.pointerId, [event.offsetX, event.offsetY]);
  });
  canvas.addEventListener("pointerup", (event) => {
    pointers.delete(event.pointerId);
    if (!hasMoved) {
      const index = nearest(event.offsetX, event.offsetY, 18);
      if (index >= 0) open(index);
    }
  });
  canvas.addEventListener("pointercancel", (event) => pointers.delete(event.pointerId));
  canvas.addEventListener(
    "wheel",
    (event) => {
      event.preventDefault();
      zoom(event.deltaY > 0 ? 1.15 : 1 / 1.15, event.offsetX, event.offsetY);
    },
    { passive: false },
  );

  // from left to right, so that N and P go over the map in an order that can be seen
  let order = [];
  function go(step) {
    if (!order.length) return;
    const place = order.indexOf(picked);
    const next = order[(place + step + order.length) % order.length];
    pick(place < 0 ? order[step > 0 ? 0 : order.length - 1] : next);
    const [a, b] = toPixel(map.x[picked], map.y[picked]);
    if (a < 0 || b < 0 || a > canvas.clientWidth || b > canvas.clientHeight) {
      view.x = map.x[picked];
      view.y = map.y[picked];
      draw();
    }
  }

  const actions = {
    ArrowLeft: () => move(40, 0),
    ArrowRight: () => move(-40, 0),
    ArrowUp: () => move(0, 40),
    ArrowDown: () => move(0, -40),
    "+": () => zoom(0.8),
    "=": () => zoom(0.8),
    "-": () => zoom(1.25),
    0: () => (fit(), draw()),
    n: () => go(1),
    p: () => go(-1),
    Enter: () => open(picked),
    Escape: () => pick(-1),
  };
  canvas.addEventListener("keydown", (event) => {
    const action = actions[event.key] ?? actions[event.key.toLowerCase()];
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    action();
  });

  function choose(what) {
    map = maps[what];
    order = map.x.map((_, i) => i).sort((a, b) => map.x[a] - map.x[b]);
    for (const button of card.querySelectorAll("[data-what]")) {
      button.setAttribute("aria-pressed", String(button.dataset.what === what));
      button.hidden = !maps[button.dataset.what];
    }
    fit();
    pick(-1);
  }

  for (const button of card.querySelectorAll("[data-what]")) button.addEventListener("click", () => choose(button.dataset.what));
  for (const button of card.querySelectorAll("[data-zoom]")) button.addEventListener("click", () => zoom(Number(button.dataset.zoom)));
  card.querySelector("[data-reset]").addEventListener("click", () => (fit(), draw()));

  function showKeys() {
    const list = card.querySelector("[data-keys]");
    for (const [mode, fill] of Object.entries(maps.colours)) {
      const item = document.createElement("li");
      const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      const dot = document.createElementNS("http://www.w3.org/2000/svg", "circle");
      for (const [key, value] of Object.entries({ width: 12, height: 12, "aria-hidden": "true" })) svg.setAttribute(key, value);
      for (const [key, value] of Object.entries({ cx: 6, cy: 6, r: 5, fill, class: `m${mode}` })) dot.setAttribute(key, value);
      svg.append(dot);
      item.append(svg, ` M${mode}`);
      list.append(item);
    }
  }

  try {
    const answer = await fetch(card.dataset.map);
    maps = await answer.json();
    if (!answer.ok) throw new Error(maps.problem);
    showKeys();
    choose("inputs");
    new ResizeObserver(() => draw()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  } catch (error) {
    says.textContent = `The map cannot be drawn: ${error.message}`;
  }
}
