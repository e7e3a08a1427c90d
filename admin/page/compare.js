// Two nodes, or two replicas of the stream that is shown, side by side.
"use strict";

const Compare = (() => {
  const { make, fill_table } = Dom;
  const { percent, short, bytes, brief } = Format;
  const by_id = (id) => document.getElementById(id);

  const node_figures = [
    ["Verdict", (node) => node.verdict.sentence],
    ["Waits", (node) => percent(node.verdict.wait_share)],
    ["Time per row", (node) => node.slowness > 0 ? `${node.slowness.toFixed(1)} \u00d7 others` : "\u2013"],
    ["Rows per second", (node) => short(node.rows_rate)],
    ["Trainers", (node) => String(node.trainers)],
    ["CPUs", (node) => node.cpu_rate.toFixed(1)],
    ["Memory", (node) => bytes(node.resident_memory_bytes)],
    ["Shared memory", (node) => bytes(node.segments_bytes)],
    ["Errors", (node) => String(node.log_errors)],
    ["Waits for nodes", (node) => percent(node.link_wait_rate)],
  ];
  const replica_figures = [
    ["Attached", (one) => one.attached ? "yes" : "no"],
    ["Process", (one) => String(one.process || "\u2013")],
    ["Batches per second", (one) => one.released_rate.toFixed(1)],
    ["Waits", (one) => percent(Math.min(1, one.wait_rate))],
    ["Time of a step, without waits", (one) => one.released_rate > 0 ? brief(Math.max(0, 1 - one.wait_rate) / one.released_rate) : "\u2013"],
    ["Wait for a batch, p50", (one) => brief(one.next_wait_seconds.p50)],
    ["Wait for a batch, p99", (one) => brief(one.next_wait_seconds.p99)],
    ["Batches with the trainer", (one) => String(Math.max(0, one.taken - one.released))],
    ["Batches ready", (one) => String(Math.max(0, one.published - one.taken))],
    ["Pauses", (one) => String(one.pauses)],
  ];

  function items(nodes, stream) {
    const all = nodes.length > 1
      ? nodes.map((node) => ({ key: `n${node.rank}`, name: `${node.host} (rank ${node.rank})`, of: node, figures: node_figures })) : [];
    for (const one of stream?.readers ?? [])
      all.push({ key: `r${one.group}/${one.replica}`, of: one, figures: replica_figures,
        name: `${one.group === "default" ? "" : `${one.group} `}replica ${one.replica}` });
    return all;
  }

  // `choose` fills a select and returns what is chosen.
  function show(nodes, stream, choose) {
    const all = items([...nodes].sort((a, b) => a.rank - b.rank), stream);
    by_id("compare-section").hidden = all.length < 2;
    if (all.length < 2) return;
    const pair = ["one", "other"].map((id, i) => {
      const select = by_id(id), wanted = choose(select, all.map((item) => [item.key, item.name]), true);
      if (select.dataset.begun === undefined && !View.get(id)) select.value = all[i].key;
      select.dataset.begun = "yes";
      return all.find((item) => item.key === select.value) ?? all.find((item) => item.key === wanted) ?? all[i];
    });
    const titles = [...new Set(pair.flatMap((item) => item.figures.map(([title]) => title)))];
    const figure = (item, title) => item.figures.find(([name]) => name === title)?.[1](item.of) ?? "\u2013";
    fill_table(by_id("compare"), ["Figure", pair[0].name, pair[1].name],
      titles.map((title) => [title, ...pair.map((item) => {
        const words = make("span", figure(item, title));
        if (title === "Verdict") words.className = "words";
        return words;
      })]));
  }

  return { show };
})();
