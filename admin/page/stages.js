// What each stage does: the diagram, and a table for either part. Content is made by many threads,
// the order of rows is decided by one.
"use strict";

const Stages = (() => {
  const { make, fill_table, bar } = Dom;
  const { percent, short, count, bytes, brief } = Format;
  const by_id = (id) => document.getElementById(id);

  // Its name, and its line in the pipeline file.
  function name_of(stage) {
    const name = make("span", stage.stage);
    if (stage.line) name.append(" ", make("span", `line ${stage.line}`, "aside"));
    return name;
  }

  function content_row(stage, workers) {
    const share = stage.busy_rate / workers;
    return [name_of(stage), bar(share, percent(share)), short(stage.rows_rate), `${bytes(stage.output_rate)}`,
      stage.rows_rate > 0 ? brief(stage.busy_rate / stage.rows_rate) : "\u2013",
      stage.call_seconds.p99 > 0 ? `${brief(stage.call_seconds.p50)} / ${brief(stage.call_seconds.p99)}` : "\u2013",
      count(stage.queued), count(stage.skipped), count(stage.errors)];
  }

  function order_row(stage) {
    const holds = stage.room > 0 ? bar(stage.queued / stage.room, `${count(stage.queued)} of ${count(stage.room)}`, "calm")
      : stage.queued > 0 ? count(stage.queued) : "\u2013";
    return [name_of(stage), bar(stage.busy_rate, percent(stage.busy_rate)), short(stage.rows_rate), holds, count(stage.errors)];
  }

  // What the diagram says of a node: its load in the part where it does its work.
  function load_of(node, parts, workers) {
    const content = parts.get(`content ${node.node}`), order = parts.get(`order ${node.node}`);
    if (node.part !== "order" && content) {
      const share = content.busy_rate / workers;
      return { share, words: `${percent(share)} of the threads` };
    }
    if (!order) return { words: "decides the order" };
    if (order.room > 0)
      return { kind: "calm", share: order.queued / order.room, words: `${count(order.queued)} of ${count(order.room)} held` };
    return { share: order.busy_rate, words: order.rows_rate > 0 ? `${short(order.rows_rate)}/s` : "decides the order" };
  }

  return {
    show(stream, plan) {
      const workers = Math.max(1, stream.threads.length - 1);
      const parts = new Map(stream.stages.map((stage) => [`${stage.part} ${stage.node}`, stage]));
      const of = (part) => stream.stages.filter((stage) => stage.part === part);

      if (plan) Pipeline.draw(by_id("diagram"), plan, (node) => load_of(node, parts, workers));
      fill_table(by_id("stages"), [`Content, in ${workers} thread${workers === 1 ? "" : "s"}`, "Share of threads",
        "Elements/s", "Made/s", "Time per element", "Time of a call: 50% / 99%", "In progress", "Skipped", "Errors"],
        of("content").map((stage) => content_row(stage, workers)));
      fill_table(by_id("order"), ["Order, in one thread", "Share of the thread", "Elements/s", "In its buffer", "Errors"],
        of("order").map(order_row));
    },
  };
})();
