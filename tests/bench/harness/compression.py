"""The cell `compression`: what storing columns smaller saves of shared memory, and what it costs.

The data of other cells, served with each of deliver.compression in turn to a trainer that decodes what
it is given and only looks; `auto` also below limits of memory: twice what lanes take as they are, where
it is chosen by its cost, and half of it, where it must be. What is delivered is compared before
anything is timed. All figures are also ratios to `none` of the same run: the machine falls out of them.
"""

import json
import statistics
from dataclasses import replace

from . import cells, data
from .measure import Failure
from .subjects import Tundish

CELLS = ("criteo", "text", "jpeg")
ASKED = ("none", "narrow", "zstd", "auto")
LIMITS = {"auto, twice the room": 2, "auto, half the room": 0.5}
FIGURES = ("shm_bytes", "server_cpu_s_per_m_rows", "trainer_cpu_s_per_m_rows", "rows_per_s")


def measure(options):
    for cell in (cell for cell in cells.choose(CELLS) if cell.name in CELLS):
        folder = data.ensure(cell.data, options.data, options.build)
        lines = measure_cell(cell, folder, options)
        for line in add_ratios(lines):
            show(line, options.json)


def measure_cell(cell, folder, options):
    tundish = Tundish(options.build)
    lines = [measure_one(tundish, cell, folder, asked, None, options) for asked in ASKED]
    for name, share in LIMITS.items():
        limit = int(lines[0]["shm_bytes"] * share)
        lines.append(measure_one(tundish, cell, folder, name, limit, options))
    if any(line["digest"] != lines[0]["digest"] for line in lines if "refused" not in line):
        raise SystemExit(f"bench: compression: {cell.name}: batches differ")
    return lines


def measure_one(tundish, cell, folder, name, limit, options):
    environment = {"COMPRESSION": name.split(",")[0]}
    if limit is not None:
        environment["MEMORY_LIMIT"] = str(limit)
    asked = replace(cell, environment={**cell.environment, **environment})
    try:
        measurement, stream = tundish.measure_stored(asked, folder, options.passes)
    except Failure as failure:
        if limit is None:
            raise SystemExit(f"bench: compression: {cell.name}, {name}: {failure}") from failure
        return refusal_of(cell.name, name, failure)
    return line_of(cell.name, name, measurement, stream)


def line_of(cell, name, measurement, stream):
    def median(of):
        return statistics.median(map(of, measurement.passes))

    return {
        "cell": "compression",
        "data": cell,
        "compression": name,
        "shm_bytes": sum(lane["segments_bytes"] for lane in stream["lanes"]),
        "server_cpu_s_per_m_rows": median(lambda one: (one.cpu_s - one.trainer_cpu_s) / one.rows * 1e6),
        "trainer_cpu_s_per_m_rows": median(lambda one: one.trainer_cpu_s / one.rows * 1e6),
        "rows_per_s": median(lambda one: one.rows / one.seconds),
        "how": stream["compression"][0]["how"],
        "why": stream["compression"][0]["why"],
        "digest": measurement.digest,
    }


def refusal_of(cell, name, why):
    """Of data that does not become small enough: the server says so before it serves."""
    return {"cell": "compression", "data": cell, "compression": name, "refused": str(why)}


def add_ratios(lines):
    """To the first, which is stored as it is."""
    return [
        line if "refused" in line else
        {**line, "to_none": {name: line[name] / lines[0][name] if lines[0][name] else None
                             for name in FIGURES}}
        for line in lines
    ]


def show(line, as_json):
    if as_json:
        print(json.dumps(line), flush=True)
        return
    if "refused" in line:
        print(f"compression {line['data']:7} {line['compression']:21} {line['refused']}", flush=True)
        return
    to_none = [line["to_none"][name] for name in FIGURES]
    print(
        f"compression {line['data']:7} {line['compression']:21} "
        f"{line['shm_bytes'] / 1e6:8.2f} MB, "
        f"CPU-s per M rows: server {line['server_cpu_s_per_m_rows']:7.3f}, "
        f"trainer {line['trainer_cpu_s_per_m_rows']:7.3f}, {line['rows_per_s']:9.0f} rows/s; to none: "
        + " ".join("-" if ratio is None else f"{ratio:.2f}" for ratio in to_none)
        + f"; {line['how']}, {line['why']}",
        flush=True,
    )


def print_table(lines):
    """For RESULTS.md, of lines that `--json` gave."""
    print("| data | compression | shared memory | server CPU | trainer CPU (s per M rows) | rows/s | stored |")
    print("|---|---|---|---|---|---|---|")
    for line in lines:
        cells_ = ["refused", "", "", "", ""] if "refused" in line else [
            *(_cell(line, name) for name in FIGURES), line["how"]]
        print(" | ".join([f"| {line['data']}", line["compression"], *cells_]) + " |")


def _cell(line, name):
    scales = {"shm_bytes": (1e6, " MB"), "rows_per_s": (1e3, " k")}
    scale, unit = scales.get(name, (1, " s per M rows"))
    if line["compression"] == "none":
        return f"{line[name] / scale:.3g}{unit}"
    ratio = line["to_none"][name]
    text = "-" if ratio is None else f"{ratio:.2f}"
    # A trainer that only looks at what lies there takes next to nothing.
    return f"{text} ({line[name]:.3g})" if name == "trainer_cpu_s_per_m_rows" else text
