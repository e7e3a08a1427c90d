// What lies over the charts: events, the cursor that all charts share, and the time that is being chosen.
"use strict";

const Marks = (() => {
  const letters = { restart: "R", death: "D", epoch: "E", alert: "A" };
  const colours = { restart: "--accent", death: "--bad", epoch: "--dim", alert: "--bad" };
  const MOST_EPOCHS = 30;
  const charts = [];
  let events = [];
  let cursor = null; // index in what is shown
  let begin = null;  // index where a pointer went down

  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  function upright(chart, index, colour, dash) {
    const { ctx, chartArea, scales } = chart, x = scales.x.getPixelForValue(index);
    ctx.save();
    ctx.strokeStyle = colour;
    ctx.setLineDash(dash);
    ctx.beginPath();
    ctx.moveTo(x, chartArea.top);
    ctx.lineTo(x, chartArea.bottom);
    ctx.stroke();
    ctx.restore();
    return x;
  }

  function draw_events(chart) {
    for (const event of events) {
      const colour = css(colours[event.kind]), x = upright(chart, event.index, colour, [3, 3]);
      chart.ctx.save();
      chart.ctx.fillStyle = colour;
      chart.ctx.font = "600 11px system-ui, sans-serif";
      chart.ctx.textAlign = "center";
      chart.ctx.fillText(letters[event.kind], x, chart.chartArea.top - 3);
      chart.ctx.restore();
    }
  }

  function draw_choice(chart) {
    if (begin === null || cursor === null) return;
    const { ctx, chartArea, scales } = chart;
    const [from, to] = [begin, cursor].map((index) => scales.x.getPixelForValue(index));
    ctx.save();
    ctx.fillStyle = css("--accent");
    ctx.globalAlpha = 0.15;
    ctx.fillRect(from, chartArea.top, to - from, chartArea.bottom - chartArea.top);
    ctx.restore();
  }

  const is_over = (chart) => cursor !== null && cursor < chart.data.labels.length;

  const plugin = {
    id: "marks",
    afterDatasetsDraw(chart) {
      draw_events(chart);
      draw_choice(chart);
      if (is_over(chart)) upright(chart, cursor, css("--dim"), []);
    },
  };

  // The figures of that second, in each chart but the one that shows them by itself.
  function point(own) {
    for (const chart of charts) {
      if (chart !== own) {
        const there = !is_over(chart) ? [] : chart.data.datasets.map((_, i) => ({ datasetIndex: i, index: cursor }));
        chart.tooltip.setActiveElements(there, { x: 0, y: 0 });
      }
      chart.draw();
    }
  }

  function index_at(chart, event) {
    const index = chart.scales.x.getValueForPixel(event.offsetX);
    return Math.max(0, Math.min(chart.data.labels.length - 1, index));
  }

  // `chosen` is told the first and the last index of the time that was drawn over a chart.
  function watch(chart, chosen) {
    const { canvas } = chart;
    charts.push(chart);
    canvas.onpointermove = (event) => { cursor = index_at(chart, event); point(chart); };
    canvas.onpointerleave = () => { if (begin === null) { cursor = null; point(null); } };
    canvas.onpointerdown = (event) => {
      if (event.pointerType !== "mouse") return; // a finger scrolls the page
      canvas.setPointerCapture(event.pointerId);
      begin = index_at(chart, event);
    };
    canvas.onpointerup = (event) => {
      const [from, to] = [begin, index_at(chart, event)].sort((a, b) => a - b);
      if (begin !== null && to - from >= 2) chosen(from, to);
      begin = null;
      point(chart);
    };
  }

  return {
    plugin,
    watch,
    forget() { charts.length = 0; },
    // Those at an index of what is shown. Many epochs would hide the rest.
    show(all) {
      const is_crowded = all.filter((event) => event.kind === "epoch").length > MOST_EPOCHS;
      events = all.filter((event) => event.kind !== "epoch" || !is_crowded);
    },
    // After new values, which the cursor stays over.
    renew() { if (cursor !== null) point(null); },
    letters,
  };
})();
