// How long things took, as histograms of the last minute at most. The server counts since its start;
// what is shown is the growth since the oldest sample that this page has kept.
"use strict";

const Latency = (() => {
  const { make } = Dom;
  const SAMPLES = 60;
  const samples = new Map(); // by node, stream and field: counts and when, the oldest first

  let span = ""; // what time the figures are of

  // Upper bound of a bucket in seconds, as the server has them.
  const bound = (i) => 1.024e-6 * 2 ** i;

  function recent(key, counts) {
    let kept = samples.get(key) ?? [];
    const newest = kept[kept.length - 1];
    if (newest && counts.some((count, i) => count < newest.counts[i])) kept = []; // another server's
    kept = [...kept, { counts, at: performance.now() }].slice(-SAMPLES);
    samples.set(key, kept);
    const before = kept.length > 1 ? kept[0].counts : counts.map(() => 0);
    span = kept.length > 1 ? `in the last ${Format.duration((performance.now() - kept[0].at) / 1000)}`
      : "since the server's start";
    return counts.map((count, i) => count - before[i]);
  }

  // As the server's own programs work it out: spread evenly in its bucket.
  function quantile(counts, total, share) {
    let below = 0;
    for (let i = 0; i < counts.length; i++) {
      const begin = i > 0 ? bound(i - 1) : 0, wanted = share * total - below;
      if (counts[i] > 0 && wanted <= counts[i])
        return i + 1 < counts.length ? Format.brief(begin + (bound(i) - begin) * wanted / counts[i])
          : `over ${Format.brief(begin)}`;
      below += counts[i];
    }
    return "\u2013";
  }

  // Fewer bars: each of two buckets, named by the upper bound.
  function halve(counts) {
    const halves = [];
    for (let i = 0; i < counts.length; i += 2) halves.push(counts[i] + (counts[i + 1] ?? 0));
    return halves;
  }

  // Bars from the first bucket that is used to the last, at least six.
  function bars(fine) {
    const counts = halve(fine);
    const first = Math.max(0, Math.min(counts.findIndex((count) => count > 0), counts.length - 6));
    let last = counts.length - 1;
    while (last > first + 5 && counts[last] === 0) last--;
    const most = Math.max(...counts);
    const box = make("div", undefined, "bars");
    box.setAttribute("aria-hidden", "true");
    for (let i = first; i <= last; i++) {
      const column = make("div", undefined, "bar");
      const room = make("div", undefined, "room");
      const fill = make("div", undefined, "fill");
      fill.style.setProperty("height", counts[i] ? `${Math.max(2, 100 * counts[i] / most)}%` : "0");
      room.append(fill);
      const label = i + 1 < counts.length ? Format.brief(bound(2 * i + 1)) : "more";
      const is_labelled = last - first < 7 || (last - i) % 2 === 0;
      column.append(room, make("span", is_labelled ? label : "\u00a0"));
      column.title = `${counts[i].toLocaleString("en")} took up to ${label}`;
      box.append(column);
    }
    return box;
  }

  return {
    span: () => span,

    // Returns a figure for histograms ({counts, sum} of the report), added up.
    draw(key, title, histograms) {
      const sums = histograms.reduce((sum, one) => sum.map((count, i) => count + one.counts[i]),
        new Array(26).fill(0));
      const counts = recent(key, sums);
      const total = counts.reduce((sum, count) => sum + count, 0);
      const figure = make("figure", undefined, "latency");
      figure.append(make("figcaption", title));
      if (total === 0) {
        figure.append(make("p", `None ${span}.`, "empty"));
        return figure;
      }
      const words = [["p50", 0.5], ["p90", 0.9], ["p99", 0.99]]
        .map(([name, share]) => `${name} ${quantile(counts, total, share)}`).join(" \u00b7 ");
      figure.append(bars(counts), make("p", words, "quantiles"));
      return figure;
    },
  };
})();
