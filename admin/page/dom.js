// Pieces of the page. Texts are set as text, never as markup: they come from files that somebody else
// wrote.
"use strict";

const Dom = (() => {
  function make(name, text, kind) {
    const node = document.createElement(name);
    if (text !== undefined) node.textContent = text;
    if (kind) node.className = kind;
    return node;
  }

  // Rows of cells, texts or nodes. The first names its row.
  function fill_table(table, titles, rows) {
    const head = make("thead"), body = make("tbody"), line = make("tr");
    for (const title of titles) {
      const cell = make("th", title);
      cell.scope = "col";
      line.append(cell);
    }
    head.append(line);
    for (const row of rows) {
      const tr = make("tr");
      row.forEach((cell, i) => {
        const td = make(i === 0 ? "th" : "td", cell instanceof Node ? undefined : cell);
        if (i === 0) td.scope = "row";
        if (cell instanceof Node) td.append(cell);
        tr.append(td);
      });
      body.append(tr);
    }
    table.replaceChildren(table.querySelector("caption"), head, body);
  }

  // A share as a bar and a number.
  function bar(share, text, kind) {
    const box = make("span"), meter = make("meter", undefined, kind);
    meter.value = Math.min(1, share ?? 0);
    meter.setAttribute("aria-hidden", "true");
    box.append(meter, make("span", text, "share"));
    return box;
  }

  return { make, fill_table, bar };
})();
