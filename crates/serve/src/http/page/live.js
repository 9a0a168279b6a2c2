// The live page. It receives events and draws them; what the buttons do is sent with the token of the page's address.
"use strict";
const $ = (id) => document.getElementById(id);
const token = new URLSearchParams(location.hash.slice(1)).get("t");
const REMEMBERED = 240;
const HEAT = ["#440154", "#482878", "#3e4a89", "#31688e", "#26828e", "#1f9e89", "#35b779", "#6ece58", "#b5de2b", "#fde725"];
let latest = null;
let chosen = 0;
/** For each device the figures of the last events. */
const past = [];

// ---- numbers as people read them
const three = (n) => (n === 0 ? "0" : n >= 100 ? n.toFixed(0) : n >= 10 ? n.toFixed(1) : n.toFixed(2));
function scaled(n, base, units) {
  let at = 0;
  while (n >= base && at < units.length - 1) { n /= base; at += 1; }
  return `${three(n)} ${units[at]}`.trim();
}
const count = (n) => Math.round(n).toLocaleString("en").replaceAll(",", "\u202f");
const bytes = (n) => scaled(n, 1024, ["B", "KiB", "MiB", "GiB", "TiB"]);
const perSecond = (n) => scaled(n, 1000, ["", "k", "M"]) + "/s";
const time = (s) => (s === null ? "–" : s >= 1 ? `${three(s)} s` : s >= 1e-3 ? `${three(s * 1e3)} ms` : `${three(s * 1e6)} us`);
const ratio = (n) => (n === null ? "–" : n === 0 ? "0" : n.toFixed(2));
const percent = (n) => (n === null ? "–" : n === 0 ? "0 %" : `${(n * 100).toFixed(1)} %`);

// ---- what is drawn over time
const PLOTS = [
  { title: "Throughput", text: (n) => bytes(n) + "/s", lines: [["read", (d) => d.read.bytes_per_s], ["write", (d) => d.write.bytes_per_s]] },
  { title: "Latency of reads", text: time, log: true, lines: [["p50", (d) => d.read.p50_s], ["p99", (d) => d.read.p99_s]] },
  { title: "Latency of writes", text: time, log: true, lines: [["p50", (d) => d.write.p50_s], ["p99", (d) => d.write.p99_s]] },
  { title: "Write amplification", text: ratio, lines: [["units programmed per unit written", (d) => d.wa]] },
  { title: "Cleaning cost", rare: true, text: ratio, lines: [["units moved per unit written", (d) => d.clean_cost]] },
  { title: "Live data in what is cleaned", rare: true, text: percent, lines: [["share", (d) => d.clean_live]] },
  { title: "Latency of transactions", rare: true, text: time, log: true, lines: [["p50", (d) => d.transaction && d.transaction.p50_s], ["p99", (d) => d.transaction && d.transaction.p99_s]] },
];
for (const plot of PLOTS) {
  const figure = document.createElement("figure");
  const heading = document.createElement("h2");
  heading.textContent = plot.title;
  plot.keys = document.createElement("ul");
  plot.keys.className = "keys";
  plot.canvas = document.createElement("canvas");
  plot.canvas.setAttribute("role", "img");
  plot.canvas.setAttribute("aria-label", plot.title);
  figure.append(heading, plot.keys, plot.canvas);
  $("plots").append(figure);
}

function color(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }

function sharp(canvas) {
  const { width, height } = canvas.getBoundingClientRect();
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.max(1, Math.round(width * ratio));
  canvas.height = Math.max(1, Math.round(height * ratio));
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  return [pen, width, height];
}

function draw(plot, samples) {
  // What few devices have is shown as soon as it is there.
  const rare = plot.rare && !plot.lines.some(([, of]) => samples.some((sample) => of(sample) !== null));
  plot.canvas.parentElement.hidden = rare;
  if (rare) { return; }
  const [pen, width, height] = sharp(plot.canvas);
  const all = plot.lines.flatMap(([, of]) => samples.map(of)).filter((n) => n !== null && (!plot.log || n > 0));
  const said = plot.lines.map(([name, of]) => `${name} ${plot.text(samples.length ? of(samples.at(-1)) : null) || "–"}`);
  plot.keys.replaceChildren(...said.map((text) => Object.assign(document.createElement("li"), { textContent: text })));
  plot.canvas.setAttribute("aria-label", `${plot.title} now: ${said.join(", ")}`);
  const left = 74, top = 8, bottom = height - 20;
  pen.font = "12px system-ui, sans-serif";
  pen.fillStyle = color("--dim");
  pen.strokeStyle = color("--line");
  if (!all.length) { pen.fillText("nothing yet", left, (top + bottom) / 2); return; }
  let least = plot.log ? Math.min(...all) : 0, most = Math.max(...all);
  if (plot.log) { least = 10 ** Math.floor(Math.log10(least)); most = Math.max(10 ** Math.ceil(Math.log10(most)), least * 10); }
  if (most === least) { most = least + 1; }
  const share = plot.log ? (n) => Math.log(n / least) / Math.log(most / least) : (n) => (n - least) / (most - least);
  const y = (n) => bottom - share(n) * (bottom - top);
  const x = (at) => left + (at + REMEMBERED - samples.length) / (REMEMBERED - 1) * (width - left - 4);
  const ticks = plot.log ? Array.from({ length: Math.round(Math.log10(most / least)) + 1 }, (_, i) => least * 10 ** i) : [least, (least + most) / 2, most];
  pen.textAlign = "right";
  for (const tick of ticks) {
    pen.beginPath(); pen.moveTo(left, y(tick)); pen.lineTo(width, y(tick)); pen.stroke();
    pen.fillText(plot.text(tick), left - 6, y(tick) + 4);
  }
  pen.textAlign = "left";
  pen.fillText(`${REMEMBERED / 2} s ago`, left, height - 4);
  pen.textAlign = "right";
  pen.fillText("now", width - 4, height - 4);
  const styles = [["--c0", []], ["--c1", [6, 4]], ["--c2", [2, 3]]];
  plot.lines.forEach(([, of], line) => {
    pen.strokeStyle = color(styles[line][0]);
    pen.setLineDash(styles[line][1]);
    pen.lineWidth = 2;
    pen.beginPath();
    let drawn = false;
    samples.forEach((sample, at) => {
      const value = of(sample);
      if (value === null || (plot.log && value <= 0)) { drawn = false; return; }
      if (drawn) { pen.lineTo(x(at), y(value)); } else { pen.moveTo(x(at), y(value)); pen.lineTo(x(at) + 1, y(value)); }
      drawn = true;
    });
    pen.stroke();
    pen.setLineDash([]);
  });
}

// ---- the maps: one for each medium of the device
const cells = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
const heat = (level) => HEAT[Math.round(level / 255 * (HEAT.length - 1))];
const tag = (name, properties = {}) => Object.assign(document.createElement(name), properties);
/** The elements of each map shown. */
const drawn = [];

/** Makes as many figures as there are maps. */
function makeFigures(many) {
  while (drawn.length > many) { drawn.pop().figure.remove(); }
  while (drawn.length < many) {
    const figure = tag("figure"), about = tag("figcaption"), canvas = tag("canvas", { tabIndex: 0 });
    const scale = tag("p", { className: "scale" }), least = tag("span"), most = tag("span"), uses = tag("ul", { className: "uses" });
    const shades = tag("canvas", { width: 200, height: 10 });
    canvas.setAttribute("role", "img");
    shades.setAttribute("aria-hidden", "true");
    const pen = shades.getContext("2d");
    HEAT.forEach((shade, at) => { pen.fillStyle = shade; pen.fillRect(at * 20, 0, 20, 10); });
    scale.append(least, shades, most);
    figure.append(about, canvas, scale, uses);
    $("maps").append(figure);
    drawn.push({ figure, about, canvas, scale, least, most, uses });
  }
}

/** What a map is coloured by: what was chosen, or else the first it has. */
function colouring(map) {
  const chosen = document.querySelector("input[name=by]:checked").value;
  return map[chosen] ? chosen : ["live", "wear", "used"].find((by) => map[by]);
}

function drawMap(map, { about, canvas, scale, least, most, uses }, alone) {
  const by = colouring(map), levels = cells(map[by]);
  // As many rows as make cells about square, each die on rows of its own.
  const perPart = levels.length / map.part_count;
  const columns = Math.max(1, Math.min(perPart, Math.ceil(Math.sqrt(levels.length * 4))));
  const lines = Math.ceil(perPart / columns);
  canvas.width = columns;
  canvas.height = map.part_count * lines;
  canvas.style.height = `${Math.min(420, Math.max(alone ? 60 : 28, canvas.height * 14))}px`;
  const pen = canvas.getContext("2d");
  const shades = by === "used" ? map.uses.map((_, at) => color(`--u${at}`)) : null;
  levels.forEach((level, at) => {
    const part = Math.floor(at / perPart), within = at % perPart;
    pen.fillStyle = shades ? shades[level] : heat(level);
    pen.fillRect(within % columns, part * lines + Math.floor(within / columns), 1, 1);
  });
  scale.hidden = by === "used";
  uses.hidden = by !== "used";
  let what, named;
  if (by === "live") {
    [named, what] = ["live data", `${count(map.live_units)} of ${count(map.units)} units are live, ${percent(map.live_units / map.units)}`];
    [least.textContent, most.textContent] = ["no live data", "all live"];
  } else if (by === "wear") {
    const worn = map.worn;
    [named, what] = ["wear", `${count(worn.min)} to ${count(worn.max)} ${worn.what}, mean ${worn.mean.toFixed(2)}, rated ${count(worn.rated)}`];
    [least.textContent, most.textContent] = [`${count(worn.min)} ${worn.what}`, `${count(worn.max)} ${worn.what}`];
  } else {
    const some = map.uses.map((use, at) => ({ ...use, at })).filter((use) => use.count > 0);
    [named, what] = ["use", some.map((use) => `${count(use.count)} ${use.name}`).join(", ")];
    uses.replaceChildren(...some.map((use) => {
      const item = tag("li"), swatch = tag("span");
      swatch.style.background = shades[use.at];
      item.append(swatch, `${use.name}: ${count(use.count)}`);
      return item;
    }));
  }
  const shared = map.shared > 1 ? `; ${map.shared} share a cell` : "";
  const parts = map.part_count > 1 ? `${map.part_count} ${map.parts} of ` : "";
  about.textContent = `${alone ? "" : `${map.name}, by ${named}: `}${parts}${count(map.per_part)} ${map.regions}${shared}: ${what}`;
  canvas.setAttribute("aria-label", `Map of the ${map.regions} of the ${map.name} by ${named}: ${what}`);
}

function drawMaps(d) {
  $("mapped").hidden = false;
  $("no-map").textContent = d.no_map ? `There is no map: ${d.no_map}.` : "";
  $("by").hidden = !d.maps.length;
  $("map-name").textContent = d.maps.length === 1 ? d.maps[0].regions[0].toUpperCase() + d.maps[0].regions.slice(1) : "Map";
  for (const radio of document.querySelectorAll("input[name=by]")) {
    radio.disabled = !d.maps.some((map) => map[radio.value]);
    if (radio.disabled && radio.checked && d.maps.length) { document.querySelector(`input[value=${colouring(d.maps[0])}]`).checked = true; }
  }
  makeFigures(d.maps.length);
  d.maps.forEach((map, at) => drawMap(map, drawn[at], d.maps.length === 1));
}

// ---- the rest of a device
function show() {
  if (!latest) { return; }
  chosen = Math.min(chosen, latest.devices.length - 1);
  const d = latest.devices[chosen];
  $("name").textContent = d.name;
  document.title = `${d.name}: nvlab live`;
  const power = d.lost ? `Lost: ${d.lost}` : "power on";
  const doing = d.ended ? "ended" : d.paused ? "paused" : d.phase ? `${d.phase}${d.done ? `, ${percent(d.done)}` : ""}` : "serving";
  const queue = d.queue_growth > 0 ? `; the queue grows by ${count(d.queue_growth)} requests a second: latencies depend on the length of the run` : "";
  const state = `${power}, ${doing}; ${bytes(d.capacity_bytes)}, device time ${time(d.now_s)}${queue}`;
  if ($("state").textContent !== state) { $("state").textContent = state; }
  $("state").className = d.lost ? "warn" : "";
  $("cut").disabled = !token || d.ended || !d.has_plug || Boolean(d.lost);
  $("pause").disabled = !token || d.ended || !d.has_pause;
  $("rate").disabled = !token || d.ended || !d.has_rate;
  $("speed").disabled = !token || d.ended;
  $("pause").textContent = d.paused ? "Resume" : "Pause";
  document.querySelectorAll(".run").forEach((label) => { label.hidden = !d.is_run; });
  if (document.activeElement !== $("speed")) { $("speed").value = d.speed === null ? "none" : String(d.speed); }
  if (document.activeElement !== $("rate")) { $("rate").value = d.rate === null ? "" : d.rate; }
  const values = [
    ["read", `${bytes(d.read.bytes_per_s)}/s`], ["read p99", time(d.read.p99_s)], ["write", `${bytes(d.write.bytes_per_s)}/s`],
    ["write p99", time(d.write.p99_s)], [d.transaction ? "accesses" : "requests", perSecond(d.read.per_s + d.write.per_s)],
    ["write amplification since power-on", ratio(d.wa_all)], ["power cuts", count(d.cut_count)],
  ];
  if (d.erases !== null) { values.splice(-1, 0, ["cleaning cost since power-on", ratio(d.clean_cost_all)], ["erases", count(d.erases)]); }
  if (d.cleaned) { values.splice(-2, 0, [`${d.maps.length ? d.maps[0].regions : "blocks"} cleaned`, count(d.cleaned)]); }
  if (d.transaction) { values.push(["transactions", perSecond(d.transaction.per_s)], ["transaction p99", time(d.transaction.p99_s)]); }
  values.push(...d.figures.map(([name, value]) => [name, count(value)]));
  $("figures").replaceChildren(...values.map(([name, value]) => {
    const item = document.createElement("div");
    item.append(Object.assign(document.createElement("dt"), { textContent: name }), Object.assign(document.createElement("dd"), { textContent: value }));
    return item;
  }));
  $("buffered").hidden = !d.buffer;
  if (d.buffer) {
    $("buffer").value = d.buffer.used / Math.max(1, d.buffer.room);
    $("buffer-about").textContent = `${count(d.buffer.used)} of ${count(d.buffer.room)} ${d.buffer.what}`;
  }
  drawMaps(d);
  PLOTS.forEach((plot) => draw(plot, past[chosen] || []));
  $("no-cuts").hidden = d.cut_count > 0;
  const listed = d.cuts.map((cut) => Object.assign(document.createElement("li"), {
    value: cut.number,
    textContent: `after ${count(cut.operations)} operations, at ${time(cut.at_s)}; recovered in ${time(cut.recovery_s)}`,
  }));
  $("cuts").replaceChildren(...listed);
}

function received(event) {
  latest = JSON.parse(event.data);
  latest.devices.forEach((device, number) => {
    past[number] = past[number] || [];
    const { maps, cuts, ...sample } = device;
    past[number].push(sample);
    past[number].splice(0, past[number].length - REMEMBERED);
  });
  if (latest.devices.length > 1 && $("device").options.length === 0) {
    $("choose").hidden = false;
    $("device").append(...latest.devices.map((device, number) => new Option(device.name, number)));
  }
  show();
  if (latest.devices.every((device) => device.ended)) { source.close(); }
}

// ---- what people do
function say(text, wrong) { $("said").textContent = text; $("said").className = wrong ? "warn" : ""; }

async function change(what, query = "") {
  try {
    const answer = await fetch(`/${what}?device=${chosen}${query}`, { method: "POST", headers: { "X-Nvlab-Token": token } });
    say((await answer.text()).trim(), !answer.ok);
  } catch {
    say("nvlab does not answer", true);
  }
}

$("cut").addEventListener("click", () => change("cut"));
$("pause").addEventListener("click", () => change(latest.devices[chosen].paused ? "resume" : "pause"));
$("speed").addEventListener("change", () => change("speed", `&times=${$("speed").value}`));
$("rate").addEventListener("change", () => change("rate", `&per_s=${$("rate").value || "none"}`));
$("device").addEventListener("change", () => { chosen = Number($("device").value); show(); });
document.querySelectorAll("input[name=by]").forEach((radio) => radio.addEventListener("change", show));
window.addEventListener("resize", show);
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
if (!token) { say("Read-only: the address that nvlab printed contains the token for the controls."); }

const source = new EventSource("/events");
source.onmessage = received;
source.onerror = () => {
  $("state").className = "warn";
  $("state").textContent = "no connection to nvlab; trying again";
};
