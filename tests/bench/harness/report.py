"""Figures of one subject in one cell, as a line of JSON or a line of text."""

import json
import math

from .measure import spread

DENSE_TOLERANCE = 1e-6
NEAR_PIXELS = 1.0  # of 255
NEAR_SUMS = 0.02


def line_of(cell, name, measurement):
    """Every figure is a median with its minimum and maximum."""
    line = {"cell": cell.name, "peer": name, "version": measurement.version}
    passes = measurement.passes
    if passes:
        line["rows_per_s"] = spread((p.rows / p.seconds for p in passes), 1)
        line["bytes_per_s"] = spread((p.bytes / p.seconds for p in passes), 0)
        line["cpu_s_per_million_rows"] = spread((p.cpu_s / p.rows * 1e6 for p in passes), 3)
        line["cpu_s_per_gb"] = spread((p.cpu_s / p.bytes * 1e9 for p in passes), 4)
        line["trainer_cpu_s_per_gb"] = spread((p.trainer_cpu_s / p.bytes * 1e9 for p in passes), 4)
        line["passes"] = len(passes)
        line["foreign_cpu"] = round(max(p.foreign for p in passes), 3)
    if measurement.peak_pss_mb:
        line["peak_pss_mb"] = round(measurement.peak_pss_mb, 1)
    if measurement.digest:
        line["digest"] = measurement.digest
    if measurement.start_s:
        line["start_s"] = spread(measurement.start_s, 3)
    return line | measurement.extra


def line_of_threads(line, count, first):
    """What more threads bring, and whether they or something else are the limit: busy ones are."""
    line = {**line, "threads": count}
    if "rows_per_s" in line:
        server_s_per_gb = line["cpu_s_per_gb"]["median"] - line["trainer_cpu_s_per_gb"]["median"]
        gb_per_s = line["bytes_per_s"]["median"] / 1e9
        line["busy_cores"] = round(server_s_per_gb * gb_per_s, 2)
        line["busy_cores_of_trainer"] = round(line["trainer_cpu_s_per_gb"]["median"] * gb_per_s, 2)
        if "rows_per_s" in first:
            line["ratio_to_first"] = round(line["rows_per_s"]["median"] / first["rows_per_s"]["median"], 2)
    return line


def line_of_failure(cell, name, error):
    return {"cell": cell.name, "peer": name, "error": str(error)}


def add_ratios(line, peers, limit):
    """How Tundish stands against the best peer and against what the machine allows."""
    best = max((_speed(peer) for peer in peers), default=0.0)
    exact = max((_speed(peer) for peer in peers if "near" not in peer), default=0.0)
    speeds = {"best_peer": best, "limit": _speed(limit or {})}
    if exact != best:
        speeds["best_exact_peer"] = exact
    for name, speed in speeds.items():
        if speed and _speed(line):
            line[f"ratio_to_{name}"] = round(_speed(line) / speed, 3)


def _speed(line):
    """More is better, whatever the cell measures; 0 where it did not run or did something else."""
    if "error" in line or "differs" in line:
        return 0.0
    if "rows_per_s" in line:
        return line["rows_per_s"]["median"]
    if "start_s" in line:
        return 1 / line["start_s"]["median"]
    return 1 / max(1, line["latency_ns"]["p50"]) if "latency_ns" in line else 0.0


def differences(line, other):
    """What differs between two digests; rows in another order are no difference in themselves.

    Where one is only near, pixels are compared by their mean; without pixels, the sums of what others draw.
    """
    one, two = line.get("digest"), other.get("digest")
    if not one or not two:
        return []
    if line.get("near") or other.get("near"):
        found = ["rows"] if one["rows"] != two["rows"] else []
        if "mean_pixel" not in one or "mean_pixel" not in two:
            scale = NEAR_SUMS * abs(one["dense_sum"])
            return found if abs(one["dense_sum"] - two["dense_sum"]) <= scale else [*found, "dense_sum"]
        if abs(one["mean_pixel"] - two["mean_pixel"]) > NEAR_PIXELS:
            found.append("mean_pixel")
        return found
    found = [name for name in ("rows", "bag", "label_sum") if one[name] != two[name]]
    scale = max(1.0, abs(one["dense_sum"]))
    if not math.isclose(one["dense_sum"], two["dense_sum"], abs_tol=DENSE_TOLERANCE * scale):
        found.append("dense_sum")
    return found


def print_line(line, as_json):
    if as_json:
        print(json.dumps(line), flush=True)
        return
    parts = [f"{line['cell']:18} {line['peer']:16}"]
    if "error" in line:
        parts.append(f"did not run: {line['error']}")
    if "near" in line:
        parts.append("other pixels, but near:")
    if "differs" in line:
        parts.append(f"delivered something else ({', '.join(line['differs'])}):")
    if "rows_per_s" in line:
        rows, cpu = line["rows_per_s"], line["cpu_s_per_million_rows"]
        parts.append(f"{rows['median']:>14,.0f} rows/s ({rows['min']:,.0f} .. {rows['max']:,.0f})")
        parts.append(f"{line['bytes_per_s']['median'] / 1e9:6.2f} GB/s")
        parts.append(f"{line['cpu_s_per_gb']['median']:.3f} CPU s/GB")
        parts.append(f"{cpu['median']:8.2f} CPU s/M rows")
    if "busy_cores" in line:
        parts.append(f"{line['threads']} threads of the server: {line['busy_cores']} cores busy")
        parts.append(f"{line['busy_cores_of_trainer']} of the trainer")
        parts.append(f"{line.get('ratio_to_first', 1)} of the first")
    if "start_s" in line:
        parts.append(f"{line['start_s']['median']:.3f} s to the first batch")
    if "latency_ns" in line:
        latency = line["latency_ns"]
        parts.append(f"{latency['p50']:,.0f} ns a batch, p99 {latency['p99']:,.0f}")
    if "ratio_to_c" in line:
        ratio = line["ratio_to_c"]
        parts.append(f"ratio_to_c {ratio['median']} ({ratio['min']} .. {ratio['max']})")
    ratios = ("ratio_to_best_peer", "ratio_to_best_exact_peer", "ratio_to_limit")
    for name in ("peak_pss_mb", "cold_start_s", *ratios):
        if name in line:
            parts.append(f"{name} {line[name]}")
    for count in (1, 4):
        if f"memory_mb_{count}_replicas" in line:
            memory = line[f"memory_mb_{count}_replicas"]
            kinds = ", ".join(f"{kind} {mb}" for kind, mb in memory.items())
            parts.append(f"MB with {count} trainers: {kinds}")
    if line.get("foreign_cpu", 0) > 0.06:
        parts.append(f"[others used {line['foreign_cpu']:.0%} of the machine]")
    print("  ".join(parts), flush=True)
