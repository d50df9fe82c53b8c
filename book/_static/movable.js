// The movable figures: plain SVG, native sliders, no library and no request.
// A figure is a div of the class faithlab-movable with a block of JSON, whose "kind" says what is drawn: "measured", the curves that
// a page measured; "removed", the images that it holds as one strip, a step at a time, beside their curves; "bets", SaCo's bets on
// pairs of groups, one by one, and the images without these groups. Without a block it is the closed form of explanation sizes.
(() => {
  "use strict";
  const WIDTH = 640, HEIGHT = 364, LEFT = 52, RIGHT = 36, TOP = 40, BOTTOM = 50;
  const LETTER = 8;  // of a label, about, where a phone enlarges them

  // faithlab.metrics.size.law, the same formula: the share of all relevance that is removed.
  function law(s, alpha, beta, tiers, weights, noise) {
    if (s <= 0) return 0;
    let start = 0, inside = 0, total = 0;
    tiers.forEach((tier, t) => {
      inside += weights[t] * Math.max(0, Math.min(s, start + tier) - start);
      total += weights[t] * tier;
      start += tier;
    });
    const gain = (1 - noise) * inside / total + noise * s;
    return Math.min(alpha * s, beta === null ? Infinity : beta) * gain / s;
  }

  function make(name, attributes = {}, text = "") {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.textContent = text;
    return node;
  }

  // A chart over shares: lines {points, kind}, marks {at, text, kind}, bands {from, to}, dots [[x, y, error]].
  function chart(svg, { longest, highest, across = "explanation size s", up = "FFid+", lines = [], marks = [], bands = [], dots = [] }) {
    const x = (s) => LEFT + s / longest * (WIDTH - LEFT - RIGHT);
    const y = (v) => HEIGHT - BOTTOM - v / highest * (HEIGHT - TOP - BOTTOM);
    const all = [];
    for (const { from, to } of bands)
      all.push(make("rect", { class: "band", x: x(from), y: TOP, width: x(to) - x(from), height: HEIGHT - TOP - BOTTOM }));
    const step = longest > 0.7 ? 0.2 : longest > 0.5 ? 0.1 : 0.05;
    for (let k = 0; k * step <= longest + 1e-9; k++)
      all.push(make("text", { x: x(k * step), y: HEIGHT - BOTTOM + 22, "text-anchor": "middle" }, `${Math.round(100 * k * step)} %`));
    const rise = [0.01, 0.02, 0.05, 0.1, 0.2].find((size) => highest / size <= 5.01) || 0.25;
    for (let v = 0; v <= highest + 1e-9; v += rise) {
      all.push(make("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(v), y2: y(v) }));
      all.push(make("text", { x: LEFT - 6, y: y(v) + 4, "text-anchor": "end" }, v.toFixed(2)));
    }
    all.push(make("text", { x: (LEFT + WIDTH) / 2, y: HEIGHT - 2, "text-anchor": "middle" }, across));
    all.push(make("text", { x: 2, y: 15 }, up));
    marks.forEach(({ at, text, kind }, k) => {
      if (at > longest) return;
      all.push(make("line", { class: `mark ${kind}`, x1: x(at), x2: x(at), y1: TOP, y2: HEIGHT - BOTTOM }));
      // To the left of its line where the text would leave the figure, or run over another mark or a band.
      const end = x(at) + 4 + LETTER * text.length;
      const others = [...marks.map((mark) => mark.at), ...bands.map(({ from }) => from)].filter((other) => other > at);
      const right = end > WIDTH || (others.some((other) => x(other) < end) && x(at) - 4 - LETTER * text.length > LEFT);
      all.push(make("text", { class: kind, x: x(at) + (right ? -4 : 4), y: TOP + 14 + 22 * k, "text-anchor": right ? "end" : "start" }, text));
    });
    for (const { points, kind } of lines)
      all.push(make("path", { class: `curve ${kind}`, d: points.map(([s, v], k) => `${k ? "L" : "M"}${x(s).toFixed(1)} ${y(v).toFixed(1)}`).join("") }));
    for (const [s, v, error] of dots) {
      all.push(make("line", { class: "error", x1: x(s), x2: x(s), y1: y(Math.max(0, v - error)), y2: y(v + error) }));
      all.push(make("circle", { class: "dot", cx: x(s), cy: y(v), r: 3.2 }));
    }
    svg.replaceChildren(...all);
  }

  // Steps {from, to} one after the other, those up to the present one drawn full, over a line at nothing.
  function steps(svg, { steps: all, present, across, up }) {
    const heights = all.flatMap(({ from, to }) => [from, to]), highest = Math.max(...heights, 0), lowest = Math.min(...heights, 0);
    const rise = [0.02, 0.05, 0.1, 0.2].find((size) => (highest - lowest) / size <= 5.01) || 0.5;
    const top = rise * Math.ceil(highest / rise - 1e-9), bottom = rise * Math.floor(lowest / rise + 1e-9);
    const wide = (WIDTH - LEFT - RIGHT) / all.length, x = (k) => LEFT + k * wide;
    const y = (v) => TOP + (top - v) / (top - bottom || 1) * (HEIGHT - TOP - BOTTOM), drawn = [];
    for (let v = bottom; v <= top + 1e-9; v += rise) {
      drawn.push(make("line", { class: Math.abs(v) < 1e-9 ? "mark" : "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(v), y2: y(v) }));
      drawn.push(make("text", { x: LEFT - 6, y: y(v) + 4, "text-anchor": "end" }, signed(v)));
    }
    for (let k = 10; k <= all.length; k += 10)
      drawn.push(make("text", { x: x(k - 0.5), y: HEIGHT - BOTTOM + 22, "text-anchor": "middle" }, k));
    drawn.push(make("text", { x: (LEFT + WIDTH) / 2, y: HEIGHT - 2, "text-anchor": "middle" }, across));
    drawn.push(make("text", { x: 2, y: 15 }, up));
    all.forEach(({ from, to, won }, k) => {
      const height = Math.max(1.5, Math.abs(y(to) - y(from)));
      drawn.push(make("rect", {
        class: `step ${won ? "won" : "lost"}${k > present ? " ahead" : ""}`,
        x: x(k) + 0.12 * wide, y: Math.min(y(from), y(to)), width: 0.76 * wide, height,
      }));
    });
    const { from, to, won } = all[present], above = y(Math.max(from, to)) - 8;
    drawn.push(make("text", { class: "sign", x: x(present + 0.5), y: above < TOP + 10 ? y(Math.min(from, to)) + 20 : above, "text-anchor": "middle" }, won ? "+" : "−"));
    svg.replaceChildren(...drawn);
  }

  let made = 0;
  function slider(parent, label, min, max, step, value, shown, changed) {
    const row = document.createElement("div"), name = document.createElement("label");
    const input = document.createElement("input"), said = document.createElement("output");
    input.id = `faithlab-slider-${++made}`;
    Object.assign(input, { type: "range", min, max, step, value });
    name.htmlFor = input.id;
    said.htmlFor = input.id;
    name.textContent = label;
    const tell = () => {
      said.textContent = shown(Number(input.value));
      input.setAttribute("aria-valuetext", said.textContent);
    };
    input.addEventListener("input", () => { tell(); changed(); });
    tell();
    row.append(name, input, said);
    parent.append(row);
    return { get: () => Number(input.value), tell, input };
  }

  function frame(root, label) {
    const svg = make("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label });
    const says = document.createElement("p"), controls = document.createElement("div");
    says.setAttribute("aria-live", "polite");
    controls.className = "controls";
    root.replaceChildren(svg, says, controls);
    return { svg, says, controls };
  }

  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const signed = (value) => value.toFixed(2).replace(/^-0.00$/, "0.00").replace("-", "−");
  const figure = (value) => (Math.abs(value) < 1e-4 ? "0" : String(Number(value.toPrecision(2)))).replace("-", "−");
  const percent = (value) => `${Math.round(1000 * value) / 10} %`;

  function theory(root) {
    const { svg, says, controls } = frame(root, "FFid+ over the explanation size, from the closed form");
    const sliders = {};
    const draw = () => {
      const v = Object.fromEntries(Object.entries(sliders).map(([key, of]) => [key, of.get()]));
      const tiers = [v.first, Math.min(v.second, 1 - v.first)], weights = [1, v.weight];
      const curve = (beta, noise) => [...Array(241).keys()].map((k) => k * 0.6 / 240)
        .map((s) => [s, law(s, v.alpha, beta, tiers, weights, noise)]);
      const own = curve(v.beta, v.noise), moves = v.beta / v.alpha, random = v.noise >= 0.995;
      chart(svg, {
        longest: 0.6, highest: Math.max(0.1, Math.ceil(10 * Math.max(...own.map(([, y]) => y))) / 10),
        lines: [{ points: own, kind: "own" }],
        marks: [...(random ? [] : [{ at: v.first, text: `c = ${percent(v.first)}: stays`, kind: "stays" }]),
          { at: moves, text: `β/α = ${percent(moves)}: moves`, kind: "moves" }],
      });
      // What is said is read off the curve that is drawn, within a fiftieth of its height.
      const top = Math.max(...own.map(([, y]) => y)), high = own.filter(([, y]) => y >= 0.98 * top).map(([s]) => s);
      const first = high[0], last = high[high.length - 1], ends = last > 0.597;
      says.textContent = random ? "The ranking is random: the curve rises to the cap's knee and stays. There is no size."
        : last - first < 0.02 ? `Rises to ${percent(first)}${ends ? " and beyond this figure." : ", then falls."}`
          : `Rises to ${percent(first)}, stays within a fiftieth of its height to ${percent(last)}${ends ? " and beyond this figure." : ", then falls."}`;
    };
    const add = (key, ...rest) => { sliders[key] = slider(controls, ...rest, percent, draw); };
    add("beta", "β, the most that is removed", 0.01, 0.3, 0.01, 0.05);
    add("alpha", "α, of the top s", 0.1, 1, 0.05, 0.5);
    add("first", "c, size of the explanation", 0.04, 0.5, 0.01, 0.2);
    add("noise", "random part of the ranking", 0, 1, 0.05, 0);
    add("second", "size of a second tier", 0, 0.4, 0.01, 0.1);
    add("weight", "weight of the second tier", 0, 1, 0.05, 0.2);
    draw();
  }

  function choice(parent, words, names) {
    const row = document.createElement("div"), label = document.createElement("label"), select = document.createElement("select");
    select.id = `faithlab-choice-${++made}`;
    label.htmlFor = select.id;
    label.textContent = words;
    names.forEach((name, k) => select.add(new Option(name, k)));
    row.append(label, select);
    parent.append(row);
    return select;
  }

  // Pictures in a row, cut out of one strip, with words below each: show(picture number, column, row, name, words).
  function frames(strip, count, columns, rows) {
    const row = document.createElement("div");
    row.className = "frames";
    const shown = [...Array(count).keys()].map((w) => {
      const figure = document.createElement("div"), picture = document.createElement("span"), said = document.createElement("span");
      const key = make("svg", { viewBox: "0 0 24 8", "aria-hidden": "true" });
      picture.setAttribute("role", "img");
      Object.assign(picture.style, { backgroundImage: `url("${strip}")`, backgroundSize: `${100 * columns}% ${100 * rows}%` });
      key.append(make("path", { class: `curve way-${w}`, d: "M0 4L24 4" }));
      figure.append(picture, key, said);
      row.append(figure);
      return { picture, key, said };
    });
    const show = (number, column, line, name, words) => {
      const { picture, said } = shown[number];
      picture.style.backgroundPosition = `${100 * column / (columns - 1)}% ${rows > 1 ? 100 * line / (rows - 1) : 0}%`;
      picture.setAttribute("aria-label", name);
      said.textContent = words;
    };
    return { row, show, keys: shown.map(({ key }) => key) };
  }

  function measured(root, { panels }) {
    const { svg, says, controls } = frame(root, "Measured FFid+ over the explanation size");
    const select = choice(controls, "Curves of", panels.map(({ name }) => name));
    const panel = () => panels[Number(select.value)];
    const cap = slider(controls, "β, the cap", 0, panels[0].caps.length - 1, 1, Math.floor(panels[0].caps.length / 2), (k) => percent(panel().caps[k]), () => draw());
    const draw = () => {
      const { sizes, curves, errors, fits, caps, alpha, size, refusal } = panel(), k = cap.get();
      const marks = [{ at: caps[k] / alpha, text: `β/α = ${percent(caps[k] / alpha)}: moves`, kind: "moves" }];
      if (size) marks.unshift({ at: size[0], text: `size ${percent(size[0])}: stays`, kind: "stays" });
      const fit = sizes.map((s, j) => [s, fits[k][j]]).filter(([, v]) => v !== null);
      chart(svg, {
        longest: sizes[sizes.length - 1], highest: Math.max(0.05, Math.ceil(20 * Math.max(...curves.flat())) / 20),
        lines: fit.length ? [{ points: fit.map(([s, v]) => [s, Math.max(0, v)]), kind: "own" }] : [], marks,
        bands: size ? [{ from: size[1], to: size[2] }] : [],
        dots: sizes.map((s, j) => [s, Math.max(0, curves[k][j]), 2 * errors[k][j]]),
      });
      says.textContent = size ? `Size ${percent(size[0])}, 95 % interval ${percent(size[1])} to ${percent(size[2])}.` : `No size: ${refusal}.`;
    };
    select.addEventListener("change", () => {
      cap.input.max = panel().caps.length - 1; // a browser moves the value into the new range
      cap.tell();
      draw();
    });
    draw();
  }

  // Images with more and more removed, each way to choose what is a row of one strip, and what a network says of them.
  function removed(root, { shares, across, down, ways }) {
    const strip = root.querySelector("img").src;
    const { svg, says, controls } = frame(root, `${down} over the ${across}, a line for each way to choose what goes first`);
    const { row, show } = frames(strip, ways.length, shares.length, ways.length);
    root.prepend(row, controls);
    const step = slider(controls, across, 0, shares.length - 1, 1, Math.round(0.3 * (shares.length - 1)), (k) => percent(shares[k]), () => draw());
    const draw = () => {
      const k = step.get();
      chart(svg, {
        longest: 1, highest: 1, across, up: down,
        lines: ways.flatMap(({ answers }, w) => {
          const points = answers.map((p, j) => [shares[j], p]);
          return [{ points, kind: `way-${w} ahead` }, { points: points.slice(0, k + 1), kind: `way-${w}` }];
        }),
        dots: ways.map(({ answers }) => [shares[k], answers[k], 0]),
      });
      ways.forEach(({ name, answers, kept }, w) => show(
        w, k, w, `${name}: the image with ${percent(shares[k])} of its pixels removed`,
        `${name}: ${answers[k].toFixed(2)}, ${kept[k] ? "✓ still recognised" : "✗ class lost"}`,
      ));
      says.textContent = `${percent(shares[k])} removed. Mean loss so far: `
        + ways.map(({ name, answers }) => `${name}: ${signed(mean(answers.slice(0, k + 1).map((p) => answers[0] - p)))}`).join("; ") + ".";
    };
    draw();
  }

  // SaCo: every two groups of features are a bet, won where the one that is said to matter more costs more.
  function bets(root, { ways, down }) {
    const strip = root.querySelector("img").src, groups = ways[0].drop.length;
    const pairs = [...Array(groups).keys()].flatMap((i) => [...Array(groups - 1 - i).keys()].map((j) => [i, i + 1 + j]));
    const { svg, says, controls } = frame(root, "SaCo growing pair by pair: a step up for each bet that is won, a step down for each that is lost");
    const { row, show, keys } = frames(strip, 2, groups + 1, ways.length);
    keys.forEach((key) => key.remove());
    root.prepend(row, controls);
    const select = choice(controls, "Groups of", ways.map(({ name }) => name));
    const name = (k) => `${k + 1} of ${pairs.length}: groups ${pairs[k][0] + 1} and ${pairs[k][1] + 1}`;
    const step = slider(controls, "pair", 0, pairs.length - 1, 1, Math.min(groups, pairs.length) - 2, name, () => draw());
    const draw = () => {
      const w = Number(select.value), k = step.get(), { salience, drop, stakes } = ways[w], pair = pairs[k], all = [];
      stakes.reduce((from, stake) => { all.push({ from, to: from + stake, won: !Object.is(stake, -0) && stake >= 0 }); return from + stake; }, 0);
      steps(svg, { steps: all, present: k, across: "pairs settled", up: "SaCo so far" });
      pair.forEach((group, place) => show(
        place, group + 1, w, `the image without group ${group + 1} of ${ways[w].name}`,
        `without group ${group + 1}: said to matter ${figure(salience[group])}, costs ${figure(drop[group])} of the ${down}`,
      ));
      const { to, won } = all[k], won_so_far = all.slice(0, k + 1).filter((one) => one.won).length, [i, j] = pair.map((group) => group + 1);
      says.textContent = `Group ${i} is said to matter more by ${figure(salience[i - 1] - salience[j - 1])} and `
        + `${won ? "costs at least as much: the bet is won, +" : "costs less: the bet is lost, −"}${figure(Math.abs(stakes[k]))}. `
        + `${won_so_far} of ${k + 1} won. ${k + 1 < pairs.length ? "So far" : "All are settled: SaCo is"} ${signed(to)}`
        + `${k + 1 < pairs.length ? `; all pairs together: ${signed(all[all.length - 1].to)}` : ""}.`;
    };
    select.addEventListener("change", draw);
    draw();
  }

  window.faithlabMovable = { law };
  for (const root of document.querySelectorAll(".faithlab-movable")) {
    const told = JSON.parse(root.querySelector("pre")?.textContent ?? '{"kind": "theory"}');
    ({ theory, measured, removed, bets })[told.kind](root, told);
    root.classList.add("alive");
  }
})();
