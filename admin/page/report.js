// What is shown, as text for a message or a ticket, and the charts as CSV.
"use strict";

const Report = (() => {
  const trim = (text) => text.replace(/\s+/g, " ").trim();

  // In columns.
  function table_text(table) {
    const rows = [...table.rows].map((row) => [...row.cells].map((cell) => trim(cell.textContent)));
    const widths = (rows[0] ?? []).map((_, i) => Math.max(...rows.map((row) => (row[i] ?? "").length)));
    return rows.map((row) => row.map((cell, i) => cell.padEnd(widths[i])).join("  ").trimEnd());
  }

  function list_text(list) {
    return [...list.children].map((item) => [...item.querySelectorAll("dt, dd, [role=img], span:not([class^=slot]), time, .figure")]
      .map((part) => trim(part.getAttribute("aria-label") ?? part.textContent)).filter(Boolean).join("  ") || trim(item.textContent));
  }

  function section_text(section) {
    const lines = [`== ${trim(section.querySelector("h2").textContent)}`];
    for (const part of section.querySelectorAll("table, dl, ol, ul, .quantiles, pre")) {
      if (part.closest("[hidden]")) continue;
      if (part.matches("table")) lines.push(...table_text(part));
      else if (part.matches("dl, ol, ul")) lines.push(...list_text(part));
      else if (part.matches("pre")) lines.push(part.textContent.trimEnd());
      else lines.push(`${trim(part.closest("figure").querySelector("figcaption").textContent)}: ${trim(part.textContent)}`);
    }
    return lines.length > 1 ? lines.join("\n") : null;
  }

  function text() {
    const words = (id) => trim(document.getElementById(id).textContent);
    const parts = [`Tundish, ${new Date().toISOString()}, ${words("server")}`, `${words("level")}: ${words("sentence")}`];
    if (words("advice")) parts.push(`What to change: ${words("advice")}`);
    parts.push(location.href);
    const sections = [...document.querySelectorAll("main section:not(#verdict, #control, [hidden])")];
    return [parts.join("\n"), ...sections.map(section_text).filter(Boolean)].join("\n\n") + "\n";
  }

  // Pages that came over plain HTTP from another machine have no clipboard: then by a selection.
  async function copy(what) {
    if (navigator.clipboard) return navigator.clipboard.writeText(what);
    const box = document.createElement("textarea");
    box.value = what;
    document.body.append(box);
    box.select();
    const done = document.execCommand("copy");
    box.remove();
    if (!done) throw new Error("the browser refuses");
  }

  const quote = (value) => /[",\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value;

  // Columns of {title, values}, the first of which are times.
  const csv = (columns) => [columns.map((column) => quote(column.title)),
    ...columns[0].values.map((_, i) => columns.map((column) => quote(String(column.values[i] ?? ""))))]
    .map((row) => row.join(",")).join("\n") + "\n";

  function save(name, what) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([what], { type: "text/csv" }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  return { text, copy, csv, save };
})();
