// The nodes of the job, the worst off first. Rows are kept and changed, not made anew: the focus stays.
"use strict";

const Nodes = (() => {
  const { make } = Dom;
  const { percent, short, count, bytes } = Format;
  const FEW = 20;
  const moods = { idle: "no readers", fine: "fed", warning: "bad data", stopping: "stopping", waiting: "waits", stuck: "stuck",
    failed: "failed", gone: "no server" };
  const by_id = (id) => document.getElementById(id);
  const rows = new Map(); // by rank: {line, cells}
  let shows_all = false;
  let titles = [];

  // A server that has ended: stopped in good order, or gone.
  const state_of = (server) => server.alive ? server.state : server.state === "stopped" ? "finished" : "gone";

  // The reason, where there is one to look at; who waits, and how long, is in other columns.
  const reason_of = (node) => ["idle", "fine"].includes(node.verdict.level) ? ""
    : node.verdict.sentence.replace(/^replica .* waits \d+% of its time:? /, "");

  function columns(has_links) {
    const all = [
      ["Rank", (node) => String(node.rank)],
      ["State", (node) => node.alive && node.state === "serving" ? moods[node.verdict.level] : state_of(node)],
      ["Waits", (node) => percent(node.verdict.wait_share)],
      ["Time per row", (node) => node.slowness > 0 ? `${node.slowness.toFixed(1)} \u00d7 others` : "\u2013"],
      ["Reason", reason_of],
      ["Rows/s", (node) => short(node.rows_rate)],
      ["CPUs", (node) => node.cpu_rate.toFixed(1)],
      ["Memory", (node) => bytes(node.resident_memory_bytes)],
      ["Shared memory", (node) => bytes(node.segments_bytes)],
      ["Errors", (node) => String(node.log_errors)],
    ];
    if (has_links)
      all.push(["Sent", (node) => `${bytes(node.link_sent_rate)}/s`],
        ["Received", (node) => `${bytes(node.link_received_rate)}/s`],
        ["Waits for nodes", (node) => percent(node.link_wait_rate)]);
    return all;
  }

  function make_row(node, wanted, choose) {
    const line = make("tr"), name = make("th"), button = make("button", node.host, "node");
    button.type = "button";
    button.addEventListener("click", () => choose(String(node.rank)));
    name.scope = "row";
    name.append(button);
    const cells = wanted.map(([title]) => {
      const cell = make("td", "", title === "Reason" ? "reason" : undefined);
      cell.dataset.title = title; // what a phone shows instead of the head
      return cell;
    });
    line.append(name, ...cells);
    return { line, button, cells };
  }

  function fill_row(row, node, wanted, is_chosen) {
    row.line.dataset.level = node.verdict.level;
    if (row.button.textContent !== node.host) row.button.textContent = node.host;
    row.button.setAttribute("aria-pressed", String(is_chosen));
    wanted.forEach(([, words], i) => {
      const text = words(node);
      if (row.cells[i].textContent !== text) row.cells[i].textContent = text;
    });
  }

  function fill_head(table, wanted) {
    const now = ["Node", ...wanted.map(([title]) => title)];
    if (now.join("\n") === titles.join("\n")) return;
    titles = now;
    rows.clear();
    const head = make("thead"), line = make("tr");
    for (const title of titles) {
      const cell = make("th", title, title === "Reason" ? "reason" : undefined);
      cell.scope = "col";
      line.append(cell);
    }
    head.append(line);
    table.replaceChildren(table.querySelector("caption"), head, make("tbody"));
  }

  // A row that moves loses the focus.
  function put_in_order(body, lines) {
    const focused = document.activeElement;
    lines.forEach((line, i) => {
      if (body.children[i] !== line) body.insertBefore(line, body.children[i] ?? null);
    });
    while (body.children.length > lines.length) body.lastElementChild.remove();
    if (focused !== document.activeElement && document.contains(focused)) focused.focus({ preventScroll: true });
  }

  // "512 nodes, 4,096 trainers: 1 waiting, 511 fed".
  function describe(nodes) {
    const trainers = nodes.reduce((sum, node) => sum + node.trainers, 0);
    const levels = new Map();
    for (const node of nodes) levels.set(node.verdict.level, (levels.get(node.verdict.level) ?? 0) + 1);
    const verbs = { idle: "no readers", fine: "fed", warning: "with bad data", stopping: "stopping", waiting: "waiting", stuck: "stuck",
      failed: "failed", gone: "without a server" };
    const words = [...levels].map(([level, number]) => `${count(number)} ${verbs[level]}`).join(", ");
    return `${count(nodes.length)} node${nodes.length === 1 ? "" : "s"}, ${count(trainers)} trainer${trainers === 1 ? "" : "s"}: ${words}`;
  }

  function show(nodes, chosen, choose) {
    const wanted = columns(nodes.some((node) => node.link_sent_rate + node.link_received_rate + node.link_wait_rate > 0));
    const table = by_id("nodes"), more = by_id("more-nodes");
    fill_head(table, wanted);
    const shown = shows_all ? nodes : nodes.slice(0, FEW);
    put_in_order(table.querySelector("tbody"), shown.map((node) => {
      if (!rows.has(node.rank)) rows.set(node.rank, make_row(node, wanted, choose));
      const row = rows.get(node.rank);
      fill_row(row, node, wanted, node.rank === chosen);
      return row.line;
    }));
    by_id("nodes-words").textContent = describe(nodes);
    more.hidden = nodes.length <= FEW;
    more.textContent = shows_all ? `Show the ${FEW} that are worst off` : `Show all ${count(nodes.length)} nodes`;
    more.setAttribute("aria-expanded", String(shows_all));
    more.onclick = () => { shows_all = !shows_all; show(nodes, chosen, choose); };
  }

  return { show, state_of };
})();
