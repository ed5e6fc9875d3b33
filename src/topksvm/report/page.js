"use strict";
// Reads {title, lead, about, columns, methods: [{name, setting, seconds, gap, accuracy, paper, std,
// curve, history}], notes, shown, explorer, colours} and fills the page. No network, no library.
const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "onclick") made.addEventListener("click", value);
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

function draw(tag, attributes, text = "") {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.textContent = text;
  return made;
}

// ---- the table ------------------------------------------------------------------------------

const order = { column: null, falling: true };

function columnsOfTable() {
  const top = data.columns.map((k) => ({
    title: `top-${k}`, value: (m) => m.accuracy[k], cell: (m) => accuracyCell(m, k),
  }));
  const plain = (title, value, text) => ({
    title, value, cell: (m) => element("td", {}, text(m)),
  });
  return [
    plain("method", (m) => m.name, (m) => m.name), ...top,
    plain("chosen", (m) => m.setting, (m) => m.setting),
    plain("gap", (m) => m.gap ?? Infinity, (m) => (m.gap == null ? "–" : m.gap.toExponential(0))),
    plain("seconds", (m) => m.seconds, (m) => m.seconds.toFixed(0)),
  ];
}

function accuracyCell(method, k) {
  const best = Math.max(...data.methods.map((m) => m.accuracy[k]));
  const cell = element("td", method.accuracy[k] === best ? { class: "best" } : {});
  const spread = method.std[k] == null ? "" : ` ± ${method.std[k].toFixed(1)}`;
  cell.append(method.accuracy[k].toFixed(2) + spread);
  if (method.paper[k] != null) {
    const difference = +(method.accuracy[k] - method.paper[k]).toFixed(2);
    const sign = difference < 0 ? "−" : "+";
    cell.append(element(
      "small",
      { class: Math.abs(difference) <= 0.5 ? "near" : "far", title: `paper: ${method.paper[k]}` },
      `${method.paper[k].toFixed(2)} (${sign}${Math.abs(difference).toFixed(2)})`,
    ));
  }
  return cell;
}

function fillTable() {
  const columns = columnsOfTable();
  const methods = [...data.methods];
  if (order.column !== null) {
    const value = columns[order.column].value;
    const compare = (a, b) => (typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b);
    methods.sort((a, b) => compare(value(a), value(b)) * (order.falling ? -1 : 1));
  }
  const head = element("tr", {}, ...columns.map((column, i) => {
    const isSorted = order.column === i;
    const arrow = isSorted ? (order.falling ? " ↓" : " ↑") : "";
    const sorting = isSorted ? (order.falling ? "descending" : "ascending") : "none";
    const press = () => {
      order.falling = isSorted ? !order.falling : typeof column.value(data.methods[0]) !== "string";
      order.column = i;
      fillTable();
    };
    return element("th", { scope: "col", "aria-sort": sorting },
      element("button", { type: "button", onclick: press }, column.title + arrow));
  }));
  const rows = methods.map((m) => element("tr", {}, ...columns.map((column) => column.cell(m))));
  $("table").replaceChildren(element("thead", {}, head), element("tbody", {}, ...rows));
}

// ---- line charts ------------------------------------------------------------------------------

const LINEAR = { to: (x) => x, ticks: linearTicks };
const LOG = { to: Math.log10, ticks: logTicks };

function linearTicks(low, high) {
  const raw = (high - low) / 6;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((f) => f * power).find((s) => s >= raw);
  const ticks = [];
  for (let x = Math.ceil(low / step) * step; x <= high + 1e-9; x += step) ticks.push(+x.toFixed(6));
  return ticks;
}

function logTicks(low, high) {
  const ticks = [];
  for (let e = Math.ceil(Math.log10(low) - 1e-9); e <= Math.log10(high) + 1e-9; e++) ticks.push(10 ** e);
  return ticks;
}

function tickText(x) {
  return x !== 0 && (x < 1e-2 || x >= 1e5) ? x.toExponential(0) : String(x);
}

function chart(home, series, { xScale, yScale, xTitle, yTitle, shown }) {
  const visible = new Set(shown);
  const width = Math.min(760, Math.max(300, home.clientWidth)), height = Math.max(260, width / 2), left = 62, right = 12, top = 12, bottom = 44;
  // By the place among all methods: a method looks the same in every chart.
  const colour = new Map(data.methods.map((m, i) => [m.name, data.colours[i % data.colours.length]]));
  const dash = new Map(data.methods.map((m, i) => [m.name, ["", "6 3", "2 3"][Math.floor(i / data.colours.length) % 3]]));

  function render() {
    const lines = series.filter((s) => visible.has(s.name));
    const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": yTitle });
    const points = lines.flatMap((s) => s.points);
    if (points.length) {
      const extent = (i) => [Math.min(...points.map((p) => p[i])), Math.max(...points.map((p) => p[i]))];
      const [x0, x1] = extent(0), [y0, y1] = extent(1);
      const place = (scale, low, high, from, to) => (v) => {
        const a = scale.to(low), b = scale.to(high);
        return b === a ? (from + to) / 2 : from + ((scale.to(v) - a) / (b - a)) * (to - from);
      };
      const x = place(xScale, x0, x1, left, width - right);
      const y = place(yScale, y0, y1, height - bottom, top);
      for (const tick of yScale.ticks(y0, y1)) {
        svg.append(draw("line", { class: "grid", x1: left, x2: width - right, y1: y(tick), y2: y(tick) }));
        svg.append(draw("text", { x: left - 8, y: y(tick) + 4, "text-anchor": "end" }, tickText(tick)));
      }
      for (const tick of xScale.ticks(x0, x1)) {
        svg.append(draw("line", { class: "grid", x1: x(tick), x2: x(tick), y1: top, y2: height - bottom }));
        svg.append(draw("text", { x: x(tick), y: height - bottom + 18, "text-anchor": "middle" }, tickText(tick)));
      }
      for (const line of lines) {
        const path = line.points.map((p, i) => `${i ? "L" : "M"}${x(p[0]).toFixed(1)},${y(p[1]).toFixed(1)}`).join("");
        const made = draw("path", { d: path, fill: "none", stroke: colour.get(line.name), "stroke-width": 2, "stroke-dasharray": dash.get(line.name) });
        made.append(draw("title", {}, line.name));
        svg.append(made);
      }
    }
    svg.append(draw("text", { x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle" }, xTitle));
    svg.append(draw("text", { transform: `translate(14 ${(height - bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, yTitle));
    const legend = element("div", { class: "legend" }, ...series.map((s) => {
      const press = () => {
        if (!visible.delete(s.name)) visible.add(s.name);
        render();
      };
      const key = element("i", { style: `background:${colour.get(s.name)}` });
      return element("button", { type: "button", "aria-pressed": visible.has(s.name), onclick: press }, key, s.name);
    }));
    home.replaceChildren(svg, legend);
  }
  render();
}

function fillCharts() {
  const curves = data.methods.map((m) => ({ name: m.name, points: m.curve }));
  chart($("curve-chart"), curves, {
    xScale: LINEAR, yScale: LINEAR, xTitle: "guesses k", yTitle: "top-k accuracy, per cent", shown: data.shown,
  });
  const traces = data.methods.filter((m) => m.history.length > 1)
    .map((m) => ({ name: m.name, points: m.history }));
  $("convergence").hidden = traces.length === 0;
  const shown = data.shown.filter((name) => traces.some((t) => t.name === name));
  chart($("convergence-chart"), traces, {
    xScale: LOG, yScale: LOG, xTitle: "seconds", yTitle: "relative duality gap",
    shown: shown.length ? shown : traces.slice(0, 4).map((t) => t.name),
  });
}

// ---- the explorer -----------------------------------------------------------------------------

const PAGE = 24;
const explorer = data.explorer;
const state = { pair: null, limit: PAGE };

function sprite(number, size) {
  const sheet = explorer.sprites;
  if (!sheet) return "";
  const zoom = size / sheet.height;
  const x = (number % sheet.columns) * sheet.width * zoom;
  const y = Math.floor(number / sheet.columns) * sheet.height * zoom;
  return element("div", {
    class: "sprite",
    style: `width:${sheet.width * zoom}px;height:${size}px;background-position:-${x}px -${y}px;` +
      `background-size:${sheet.columns * sheet.width * zoom}px auto`,
  });
}

function fillPairs() {
  $("pairs-note").textContent = "How often one of the two is the truth and the other is preferred to it among the first " +
    `five guesses of ${explorer.reference}, in per cent of their test images. Select a pair to see these images.`;
  $("pairs").replaceChildren(...explorer.pairs.map(([a, b, share]) => {
    const isChosen = state.pair !== null && state.pair[0] === a && state.pair[1] === b;
    const press = () => {
      state.pair = isChosen ? null : [a, b];
      state.limit = PAGE;
      fillPairs();
      fillCards();
    };
    const text = element("span", {}, `${explorer.classes[a]} / ${explorer.classes[b]}`, element("br"), `${(100 * share).toFixed(0)} %`);
    const button = { type: "button", "aria-pressed": isChosen, onclick: press };
    return element("li", {}, element("button", button, sprite(a, 44), sprite(b, 44), text));
  }));
}

function matches(row, model) {
  const truth = explorer.truth[row];
  const rank = model.ranks[row];
  const wanted = $("outcome").value;
  const text = $("search").value.trim().toLowerCase();
  if (state.pair !== null && !state.pair.includes(truth)) return false;
  if (text && !explorer.classes[truth].toLowerCase().includes(text)) return false;
  if (wanted === "first") return rank === 1;
  if (wanted === "later") return rank > 1 && rank <= 5;
  return wanted === "missed" ? rank > 5 : true;
}

function card(row, model) {
  const truth = explorer.truth[row];
  const guesses = model.classes[row].map((c, i) => element(
    "div", { class: c === truth ? "guess true" : "guess" },
    element("span", {}, explorer.classes[c]), element("span", {}, model.scores[row][i].toPrecision(3)),
  ));
  const side = element("div", { class: "side" }, element("b", {}, explorer.classes[truth]), ...guesses);
  return element("div", { class: "card" }, sprite(explorer.classes.length + row, 84), side);
}

function fillCards() {
  const model = explorer.models[$("model").value];
  const rows = explorer.truth.map((_, row) => row).filter((row) => matches(row, model));
  $("count").textContent = `${rows.length} of ${explorer.truth.length} images`;
  $("cards").replaceChildren(...rows.slice(0, state.limit).map((row) => card(row, model)));
  $("more").hidden = rows.length <= state.limit;
}

function startExplorer() {
  $("explorer").hidden = !explorer;
  if (!explorer) return;
  if (explorer.sprites) {
    const rule = `.sprite { background-image: url(${explorer.sprites.uri}); }`;
    document.head.append(element("style", {}, rule));
  }
  $("model").append(...Object.keys(explorer.models).map((name) => element("option", {}, name)));
  $("model").value = explorer.reference;
  const again = () => {
    state.limit = PAGE;
    fillCards();
  };
  for (const id of ["model", "search", "outcome"]) $(id).addEventListener("input", again);
  $("filters").addEventListener("submit", (event) => event.preventDefault());
  $("more").addEventListener("click", () => {
    state.limit += 4 * PAGE;
    fillCards();
  });
  fillPairs();
  fillCards();
}

$("title").textContent = data.title;
$("lead").textContent = data.lead;
$("accuracy-note").textContent = data.note;
$("notes").replaceChildren(...data.notes.map((note) => element("li", {}, note)));
$("about").textContent = data.about;
fillTable();
startExplorer();
fillCharts();
let drawnFor = innerWidth;
addEventListener("resize", () => {
  if (innerWidth === drawnFor) return;
  drawnFor = innerWidth;
  fillCharts();
});
