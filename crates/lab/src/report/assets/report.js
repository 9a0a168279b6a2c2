// Draws the charts of a report from the data in the page: latency, over time, wear by block and die.
// Colours come from the style sheet; when the reader's system turns dark or light, all is drawn again.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const runs = data.runs;
  if (runs.length === 0) return;
  document.documentElement.classList.add("scripted");
  const OPS = ["read", "write", "trim", "flush"];
  const DASH = { read: [7, 4], write: [], trim: [2, 3], flush: [10, 3, 2, 3] };
  let charts = [];

  // Numbers, as the tables have them.
  const three = (v) => {
    if (v === 0) return "0";
    const text = v.toPrecision(3);
    return Math.abs(v) >= 1000 || Math.abs(v) < 1e-6 ? Math.round(v).toString() : Number(text).toFixed(
      Math.max(0, 2 - Math.floor(Math.log10(Math.abs(Number(text))))));
  };
  const scaled = (v, units) => {
    let best = units[0];
    for (const unit of units) if (Math.abs(v) >= unit[0] * 0.9995) best = unit;
    return [v / best[0], best[1]];
  };
  const NS = [[1, "ns"], [1e3, "us"], [1e6, "ms"], [1e9, "s"]];
  const RATE = [[1, "B/s"], [1e3, "kB/s"], [1e6, "MB/s"], [1e9, "GB/s"]];
  const timeText = (ns) => { const [v, unit] = scaled(ns, NS); return (ns < 1000 && ns % 1 === 0 ? ns : three(v)) + " " + unit; };
  const rateText = (v) => { const [r, unit] = scaled(v, RATE); return three(r) + " " + unit; };
  const shareText = (v) => {
    if (v === 0) return "0 %";
    const decimals = Math.max(0, 2 - Math.floor(Math.log10(v * 100) + 1e-9));
    return short((v * 100).toFixed(Math.min(decimals, 12)) + " %");
  };
  // Round values on an axis, without needless zeros.
  const short = (text) => text.replace(/(\.\d*?)0+(?= |$)/, "$1").replace(/\.(?= |$)/, "");
  const shown = (format) => (u, v) => (v == null ? "–" : format(v));
  // Places on a logarithmic axis: 1, 2, 5, 10..., only decades if there are many, evenly spaced if there is not one.
  const logTicks = (u, index, min, max) => {
    if (max / min < 9) {
      const raw = (max - min) / 5, power = Math.pow(10, Math.floor(Math.log10(raw)));
      const step = [1, 2, 5, 10].map((m) => m * power).find((v) => v >= raw * 0.999), even = [];
      for (let i = Math.ceil(min / step); i * step <= max; i++) even.push(Number((i * step).toPrecision(12)));
      return even;
    }
    const decades = Math.log10(max / min), room = u.bbox.width / (window.devicePixelRatio || 1);
    const ticks = [], steps = decades > 4.3 || (index === 0 && decades * 3 * 62 > room) ? [1] : [1, 2, 5];
    for (let e = Math.floor(Math.log10(min)); e <= Math.ceil(Math.log10(max)); e++) for (const m of steps) {
      const v = Number(m + "e" + e);
      if (v >= min * 0.9999 && v <= max * 1.0001) ticks.push(v);
    }
    return ticks;
  };
  const logAxis = { splits: logTicks, filter: (u, splits) => splits };

  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const colorOf = (run) => css("--c" + run.color);

  const axis = (label, values, more) => Object.assign({
    label, values, stroke: css("--dim"), font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif",
    labelSize: 20, grid: { stroke: css("--line"), width: 1 }, ticks: { stroke: css("--line"), width: 1, size: 5 },
  }, more);

  // A filled mark for a solid line, an empty dashed one for a dashed line.
  const solid = (u, i) => u.series[i].dash.length === 0;
  const legend = { markers: {
    width: 2, dash: (u, i) => (i > 0 && !solid(u, i) ? "dashed" : "solid"),
    fill: (u, i) => (i > 0 && solid(u, i) ? u.series[i].stroke(u, i) : "transparent"),
  } };

  const plot = (id, options, columns) => {
    const place = document.getElementById(id);
    place.replaceChildren();
    const chart = new uPlot(Object.assign({ width: place.clientWidth, legend }, options), columns, place);
    charts.push({ chart, place });
    return chart;
  };
  const nothing = (id) => { document.getElementById(id).textContent = "Nothing to show."; };

  // Share of requests that took at least this long, on a common logarithmic grid.
  const drawLatency = () => {
    const lines = [];
    for (const run of runs) for (const op of OPS) {
      const buckets = run.result[op].histogram.filter((bucket) => bucket[1] > 0);
      if (buckets.length > 0) lines.push({ run, op, buckets });
    }
    if (lines.length === 0) return nothing("chart-latency");
    const least = Math.max(1, Math.min(...lines.map((line) => line.buckets[0][0])) * 0.9);
    const most = Math.max(...lines.map((line) => line.buckets[line.buckets.length - 1][0])) * 1.02;
    const POINTS = 900, grid = [];
    for (let i = 0; i <= POINTS; i++) grid.push(least * Math.pow(most / least, i / POINTS));
    let rarest = 1;
    const columns = lines.map((line) => {
      const total = line.buckets.reduce((sum, bucket) => sum + bucket[1], 0);
      let i = 0, left = total;
      return grid.map((x) => {
        while (i < line.buckets.length && line.buckets[i][0] < x) left -= line.buckets[i++][1];
        if (left <= 0) return null;
        rarest = Math.min(rarest, left / total);
        return left / total;
      });
    });
    const low = Math.pow(10, Math.floor(Math.log10(rarest) + 1e-9));
    plot("chart-latency", {
      height: 380,
      scales: { x: { time: false, distr: 3 }, y: { distr: 3, range: [low, 1] } },
      axes: [
        axis("latency", (u, s) => s.map((v) => short(timeText(v))), { size: 30, ...logAxis }),
        axis("share of requests", (u, s) => s.map(shareText), { size: 78, ...logAxis }),
      ],
      series: [{ label: "took at least", value: shown(timeText) }].concat(lines.map((line) => ({
        label: runs.length > 1 ? line.run.label + " " + line.op : line.op,
        stroke: colorOf(line.run), width: 2, dash: DASH[line.op], value: shown(shareText), points: { show: false },
      }))),
    }, [grid].concat(columns));
  };

  // Windows of all runs on the union of their middles and ends; each value is that of the window it falls into.
  const middles = () => {
    const times = new Set();
    for (const { result: { series } } of runs) {
      for (const w of series) times.add((w.from_s + w.to_s) / 2);
      if (series.length > 0) times.add(series[0].from_s).add(series[series.length - 1].to_s);
    }
    return Array.from(times).sort((a, b) => a - b);
  };
  const over = (times, run, get) => {
    const windows = run.result.series;
    let i = 0;
    return times.map((t) => {
      while (i < windows.length && windows[i].to_s < t) i++;
      if (i >= windows.length || windows[i].from_s > t) return null;
      const value = get(windows[i]);
      return Number.isFinite(value) && value > 0 ? value : null;
    });
  };

  let zooming = false;
  const linkedZoom = (chart, key) => {
    if (key !== "x" || zooming) return;
    zooming = true;
    const { min, max } = chart.scales.x;
    for (const other of charts) if (other.linked && other.chart !== chart) other.chart.setScale("x", { min, max });
    zooming = false;
  };

  const drawTime = (id, times, name, format, ofWindow, scale, ops) => {
    const lines = [], columns = [];
    for (const run of runs) for (const op of ops) {
      const column = over(times, run, (w) => ofWindow(w, op));
      if (column.every((v) => v == null)) continue;
      columns.push(column);
      lines.push({
        label: [runs.length > 1 || op === "" ? run.label : "", op].join(" ").trim(),
        stroke: colorOf(run), width: 1.75, dash: DASH[op] || [], value: shown(format),
        points: { show: times.length < 40, size: 5 }, spanGaps: false,
      });
    }
    if (lines.length === 0) return nothing(id);
    const end = times[times.length - 1];
    const [, unit] = scaled(end * 1e9, NS), factor = NS.find((u) => u[1] === unit)[0] / 1e9;
    const logarithmic = scale.distr === 3;
    plot(id, {
      height: 250,
      cursor: { sync: { key: "time" } },
      scales: { x: { time: false }, y: scale },
      hooks: { setScale: [linkedZoom] },
      axes: [
        axis("simulated time, " + unit, (u, s) => s.map((v) => short((v / factor).toFixed(6))), { size: 30 }),
        axis(name, (u, s) => s.map((v) => short(format(v))), { size: 78, ...(logarithmic ? logAxis : {}) }),
      ],
      series: [{ label: "at", value: shown((v) => timeText(v * 1e9)) }].concat(lines),
    }, [times].concat(columns));
    charts[charts.length - 1].linked = true;
  };

  const drawTimes = () => {
    const times = middles();
    const ids = ["chart-throughput", "chart-p99", "chart-waf"];
    if (times.length === 0) return ids.forEach(nothing);
    const fromZero = { range: (u, min, max) => [0, (max || 1) * 1.08] };
    // Whole decades make an empty picture of a factor of three: a little room above and below is enough.
    const close = { distr: 3, range: (u, min, max) => [(min || 1) * 0.8, (max || 10) * 1.25] };
    drawTime(ids[0], times, "bytes per second", rateText,
      (w, op) => w[op + "_bytes"] / (w.to_s - w.from_s), fromZero, ["read", "write"]);
    drawTime(ids[1], times, "99 % latency", timeText, (w, op) => w[op + "_p99_ns"], close, ["read", "write"]);
    drawTime(ids[2], times, "write amplification", three, (w) => w.write_amplification, fromZero, [""]);
  };

  // Erase counts: dark is little, light is much (viridis, good for colour-blind readers).
  const STOPS = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];
  const heatColor = (share) => {
    const at = Math.min(Math.max(share, 0), 1) * (STOPS.length - 1), i = Math.min(Math.floor(at), STOPS.length - 2);
    const mix = STOPS[i].map((v, k) => Math.round(v + (STOPS[i + 1][k] - v) * (at - i)));
    return "rgb(" + mix.join(",") + ")";
  };
  const drawHeat = (canvas) => {
    const run = runs[Number(canvas.dataset.run)], cycles = run.result.flash.cycles;
    const all = runs.flatMap((r) => (r.result.flash.cycles.length ? [r.result.flash.cycles_min, r.result.flash.cycles_max] : []));
    const least = Math.min(...all), most = Math.max(...all), range = most - least || 1;
    const dies = run.dies, blocks = cycles.length / dies;
    // Long dies take several lines.
    const lines = Math.ceil(blocks / 1024), columns = Math.ceil(blocks / lines), rows = dies * lines;
    const width = canvas.clientWidth, left = 52, right = 8, top = 30, bottom = 36;
    const tall = Math.max(dies <= 8 ? 22 : 8, 4 * lines) / lines, high = rows * tall, height = top + high + bottom;
    const scale = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.height = height + "px";
    const c = canvas.getContext("2d");
    c.scale(scale, scale);
    const x = (column) => left + (width - left - right) * column / columns;
    cycles.forEach((cycle, index) => {
      const die = Math.floor(index / blocks), block = index % blocks;
      const row = die * lines + Math.floor(block / columns), column = block % columns;
      const x0 = Math.round(x(column) * scale) / scale, x1 = Math.round(x(column + 1) * scale) / scale;
      c.fillStyle = heatColor((cycle - least) / range);
      c.fillRect(x0, top + row * tall, Math.max(x1 - x0, 1 / scale), tall - (lines === 1 && tall > 6 ? 1 : 0));
    });
    c.font = "12px system-ui, sans-serif";
    c.fillStyle = css("--dim");
    c.textBaseline = "middle";
    c.textAlign = "right";
    const every = Math.ceil(14 / (tall * lines));
    for (let die = 0; die < dies; die += every) c.fillText("die " + die, left - 8, top + (die + 0.5) * lines * tall);
    c.textAlign = "center";
    const step = [1, 2, 5, 10, 20, 50, 64, 100, 128, 200, 250, 500].find((s) => columns / s <= 10) || 1000;
    for (let block = 0; block < columns; block += step) c.fillText(block, x(block + 0.5), top + high + 10);
    c.fillText(lines > 1 ? "block (" + columns + " on a line, " + lines + " lines a die)" : "block", (left + width - right) / 2, top + high + 27);
    // The key to the colours.
    const wide = 160, from = width - right - wide - 90;
    for (let i = 0; i < wide; i++) { c.fillStyle = heatColor(i / wide); c.fillRect(from + i, 6, 1.5, 10); }
    c.fillStyle = css("--dim");
    c.textAlign = "right";
    c.fillText(least, from - 8, 11);
    c.textAlign = "left";
    c.fillText(most + " erases", from + wide + 8, 11);
    canvas.onmousemove = (event) => {
      const tip = canvas.nextElementSibling, box = canvas.getBoundingClientRect();
      const column = Math.floor((event.clientX - box.left - left) / (width - left - right) * columns);
      const row = Math.floor((event.clientY - box.top - top) / tall);
      const die = Math.floor(row / lines), block = (row % lines) * columns + column;
      const inside = column >= 0 && column < columns && row >= 0 && row < rows && block < blocks;
      tip.textContent = inside ? "die " + die + ", block " + block + ": " + cycles[die * blocks + block] + " erases" : "\u00a0";
    };
  };

  const drawAll = () => {
    for (const { chart } of charts) chart.destroy();
    charts = [];
    drawLatency();
    drawTimes();
    document.querySelectorAll("canvas.heat").forEach(drawHeat);
  };
  drawAll();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  let width = document.body.clientWidth;
  addEventListener("resize", () => {
    if (document.body.clientWidth === width) return;
    width = document.body.clientWidth;
    for (const { chart, place } of charts) chart.setSize({ width: place.clientWidth, height: chart.height });
    document.querySelectorAll("canvas.heat").forEach(drawHeat);
  });
})();
