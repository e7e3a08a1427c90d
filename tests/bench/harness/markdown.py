"""The tables of RESULTS.md from lines of scripts/bench --json: python -m harness.markdown FILE ..."""

import json
import sys

from . import compression
from .measure import QUIET

_HEAD = {
    "rows_per_s": "rows/s: median (least .. most)",
    "gb_per_s": "GB/s",
    "cpu": "CPU-s per M rows",
    "cpu_gb": "CPU-s per GB (trainer)",
    "start_s": "seconds to the first batch",
    "latency": "p50 / p99",
    "memory": "MB",
    "one": "MB of the server, 1 trainer",
    "four": "4 trainers",
    "to_c": "to the C reader",
    "ratio": "Tundish to it",
}


def main():
    cells = {}
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            for line in map(json.loads, file):
                cells.setdefault(line["cell"], []).append(line)
    for cell, lines in cells.items():
        if cell == "compression":
            compression.print_table(lines)
        elif has_table(lines):
            print_cell(cell, lines)


def has_table(lines):
    """Cells that measure something of their own, once, have no peers, or figures that are no spreads."""
    return all("peer" in line and isinstance(line.get("rows_per_s", {}), dict) for line in lines)


def print_cell(cell, lines):
    own = next((line for line in lines if line["peer"] == "tundish"), {})
    rows = [_row(line, own) for line in sorted(lines, key=_order)]
    names = [name for name in _HEAD if any(row.get(name) for row in rows)]
    print(f"### {cell}\n")
    print("| | " + " | ".join(_HEAD[name] for name in names) + " |")
    print("|---" * (1 + len(names)) + "|")
    for row in rows:
        print(f"| {row['who']} | " + " | ".join(row.get(name, "") for name in names) + " |")
    print()


def _order(line):
    return {"tundish": 0, "limit": 1, "c": 1}.get(line["peer"], 2)


def _row(line, own):
    row = {"who": line["peer"] + (f" ({line['version']})" if line.get("version") else "")}
    if "error" in line:
        row["who"] += f": did not run: {line['error']}"
        return row
    if "near" in line:
        row["who"] += ", other pixels, but near"
    if "differs" in line:
        row["who"] += ": delivered something else"
    if "rows_per_s" in line:
        row["rows_per_s"] = _spread(line["rows_per_s"], 0)
        row["gb_per_s"] = f"{line['bytes_per_s']['median'] / 1e9:.2f}"
        row["cpu"] = f"{line['cpu_s_per_million_rows']['median']:.2f}"
        trainer = line["trainer_cpu_s_per_gb"]["median"]
        row["cpu_gb"] = f"{line['cpu_s_per_gb']['median']:.3f} ({trainer:.3f})"
        if line["foreign_cpu"] > QUIET:
            row["who"] += f", others used {line['foreign_cpu']:.0%} of the machine"
        if line["passes"] < 5:
            row["who"] += f", {line['passes']} passes"
    if "start_s" in line:
        row["start_s"] = _spread(line["start_s"], 3)
    if "latency_ns" in line:
        latency = line["latency_ns"]
        row["latency"] = f"{latency['p50'] / 1e3:.2f} / {latency['p99'] / 1e3:.2f} µs"
    if "peak_pss_mb" in line:
        row["memory"] = f"{line['peak_pss_mb']:.0f}"
    if "memory_mb_1_replicas" in line:
        row["one"], row["four"] = (_parts(line[f"memory_mb_{n}_replicas"]) for n in (1, 4))
    if "ratio_to_c" in line:
        row["to_c"] = _spread(line["ratio_to_c"], 2)
    row["ratio"] = _ratio(own, line)
    return row


def _spread(figures, digits):
    low, middle, high = (f"{figures[name]:,.{digits}f}" for name in ("min", "median", "max"))
    return f"{middle} ({low} .. {high})"


def _parts(memory):
    return ", ".join(f"{name} {megabytes:.0f}" for name, megabytes in memory.items())


def _ratio(own, line):
    """How often Tundish is as fast."""
    if line is own:
        return ""
    for name, better in (("rows_per_s", 1), ("start_s", -1)):
        if name in line and name in own:
            return f"{(own[name]['median'] / line[name]['median']) ** better:.2f}"
    if "latency_ns" in line and "latency_ns" in own:
        return f"{line['latency_ns']['p50'] / own['latency_ns']['p50']:.2f}"
    return ""


if __name__ == "__main__":
    main()
