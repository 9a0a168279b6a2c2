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
  { title: "Write amplification", text: ratio, lines: [["units programmed for each unit written", (d) => d.wa]] },
  { title: "Cleaning cost", text: percent, lines: [["live share of the blocks cleaned", (d) => d.clean_live]] },
];
for (const plot of PLOTS) {
  const figure = document.createElement("figure");
  const heading = document.createElement("h2");
  heading.textContent = plot.title;
  plot.keys = document.createElement("ul");
  plot.keys.className = "keys";
  plot.canvas = document.createElement("canvas");
  plot.canvas.setAttribute("role", "img");
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

// ---- the map of blocks
const cells = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
const colored = (level) => HEAT[Math.round(level / 255 * (HEAT.length - 1))];
function by() { return document.querySelector("input[name=by]:checked").value; }

function drawMap(map) {
  $("mapped").hidden = !map;
  if (!map) { return; }
  document.querySelector("input[value=live]").disabled = !map.live;
  if (!map.live) { document.querySelector("input[value=wear]").checked = true; }
  const live = by() === "live";
  const levels = cells(live ? map.live : map.wear);
  // As many rows as make cells about square, each die on rows of its own.
  const perDie = levels.length / map.dies;
  const columns = Math.max(1, Math.min(perDie, Math.ceil(Math.sqrt(levels.length * 4))));
  const lines = Math.ceil(perDie / columns);
  const canvas = $("map");
  canvas.width = columns;
  canvas.height = map.dies * lines;
  canvas.style.height = `${Math.min(420, Math.max(60, canvas.height * 14))}px`;
  const pen = canvas.getContext("2d");
  levels.forEach((level, at) => {
    const die = Math.floor(at / perDie), within = at % perDie;
    pen.fillStyle = colored(level);
    pen.fillRect(within % columns, die * lines + Math.floor(within / columns), 1, 1);
  });
  const scale = $("scale").getContext("2d");
  HEAT.forEach((shade, at) => { scale.fillStyle = shade; scale.fillRect(at * 20, 0, 20, 10); });
  const mean = levels.reduce((sum, level) => sum + level, 0) / levels.length / 255;
  $("least").textContent = live ? "no live data" : `${count(map.wear_min)} erases`;
  $("most").textContent = live ? "all live" : `${count(map.wear_max)} erases`;
  const what = live ? `mean live share ${percent(mean)}` : `${map.wear_min} to ${map.wear_max} erases, mean ${map.wear_mean.toFixed(2)}, rated ${count(map.rated)}`;
  const shared = map.shared > 1 ? `; ${map.shared} blocks share a cell` : "";
  $("map-about").textContent = `${map.dies} dies of ${count(map.per_die)} blocks${shared}: ${what}`;
  canvas.setAttribute("aria-label", `Map of blocks by ${live ? "live data" : "wear"}: ${what}`);
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
  const state = `${power}, ${doing}; ${bytes(d.capacity_bytes)}, device time ${time(d.now_s)}`;
  if ($("state").textContent !== state) { $("state").textContent = state; }
  $("state").className = d.lost ? "warn" : "";
  $("cut").disabled = !token || d.ended || !d.has_plug || Boolean(d.lost);
  $("pause").disabled = !token || d.ended;
  $("pause").textContent = d.paused ? "Resume" : "Pause";
  document.querySelectorAll(".run").forEach((label) => { label.hidden = !d.is_run; });
  if (document.activeElement !== $("speed")) { $("speed").value = d.speed === null ? "none" : String(d.speed); }
  if (document.activeElement !== $("rate")) { $("rate").value = d.rate === null ? "" : d.rate; }
  const figures = [
    ["read", `${bytes(d.read.bytes_per_s)}/s`], ["read p99", time(d.read.p99_s)], ["write", `${bytes(d.write.bytes_per_s)}/s`],
    ["write p99", time(d.write.p99_s)], ["requests", perSecond(d.read.per_s + d.write.per_s)],
    ["write amplification since power-on", ratio(d.wa_all)], ["blocks cleaned", count(d.cleaned)], ["erases", count(d.erases)],
    ["power cuts", count(d.cut_count)],
  ];
  $("figures").replaceChildren(...figures.map(([name, value]) => {
    const item = document.createElement("div");
    item.append(Object.assign(document.createElement("dt"), { textContent: name }), Object.assign(document.createElement("dd"), { textContent: value }));
    return item;
  }));
  $("buffered").hidden = !d.buffer;
  if (d.buffer) {
    $("buffer").value = d.buffer[0] / Math.max(1, d.buffer[1]);
    $("buffer-about").textContent = `${count(d.buffer[0])} of ${count(d.buffer[1])} units`;
  }
  drawMap(d.map);
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
    const { map, cuts, ...sample } = device;
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
if (!token) { say("Only to look at: the address that nvlab printed has the token for the controls."); }

const source = new EventSource("/events");
source.onmessage = received;
source.onerror = () => {
  $("state").className = "warn";
  $("state").textContent = "no connection to nvlab; trying again";
};
