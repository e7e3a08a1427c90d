// Numbers as people read them.
"use strict";

const Format = (() => {
  const percent = (share) => `${Math.round((share ?? 0) * 100)}%`;

  // A share of which small parts matter: 0.04%, 3.2%, 41%.
  function fine_percent(share) {
    const value = (share ?? 0) * 100;
    return `${value === 0 || value >= 10 ? Math.round(value) : Number(value.toPrecision(2))}%`;
  }

  function short(value) {
    const units = ["", " k", " M", " G", " T"];
    let unit = 0;
    value = value ?? 0;
    while (Math.abs(value) >= 999.5 && unit + 1 < units.length) { value /= 1000; unit++; }
    return `${value >= 99.95 || unit === 0 ? Math.round(value) : value.toPrecision(3)}${units[unit]}`;
  }

  // A count: in full while it is small, without digits that say nothing.
  const count = (value) => value < 10000 ? Math.round(value).toLocaleString("en") : short(value).replace(/\.?0+(?= )/, "");

  const bytes = (value) => `${short(value)}${(value ?? 0) >= 999.5 ? "" : " "}B`;

  // A time well below a second.
  function small(seconds) {
    for (const [unit, size] of [["ns", 1e-9], ["\u00b5s", 1e-6], ["ms", 1e-3]])
      if (seconds < 999.5 * size) return `${Number((seconds / size).toPrecision(3))} ${unit}`;
    return `${Number(seconds.toPrecision(3))} s`;
  }

  // The same in two digits, for where there is little room.
  const brief = (seconds) => small(Number(seconds.toPrecision(2)));

  function duration(seconds) {
    if (seconds < 90) return `${Math.round(seconds)} s`;
    if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
    return `${(seconds / 3600).toFixed(1)} h`;
  }

  return { percent, fine_percent, short, count, bytes, small, brief, duration };
})();
