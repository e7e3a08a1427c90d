"""Takes passes from a program that prints a line of JSON after each, and keeps the quiet ones."""

import json
import os
import statistics
import time
from dataclasses import dataclass, field

from . import processes

QUIET = 0.06  # other processes may use this share of the machine during a pass
TRIES = 3  # times the passes asked for, if the machine is not quiet


class Failure(Exception):
    """The program ended, or said something else than a pass."""


@dataclass(frozen=True)
class Pass:
    rows: int
    bytes: int
    seconds: float
    cpu_s: float
    foreign: float  # the share of the machine that others used meanwhile


@dataclass
class Measurement:
    version: str = ""
    peak_pss_mb: float = 0.0
    digest: dict | None = None
    passes: list = field(default_factory=list)
    start_s: list = field(default_factory=list)  # from process start to first batch
    extra: dict = field(default_factory=dict)


def take_passes(reader, roots, wanted):
    """Measure a running program whose standard output is `reader`. The first pass is a check."""
    measurement = Measurement()
    memory = processes.PeakMemory(roots)
    line = _line(reader)
    measurement.version = line.get("version", "")
    measurement.digest = line.get("digest")
    measurement.peak_pss_mb = memory.stop()
    passes = []
    while len(passes) < wanted * TRIES and sum(p.foreign < QUIET for p in passes) < wanted:
        start, busy, cpu = time.monotonic(), processes.busy_s(), processes.cpu_s(roots)
        line = _line(reader)
        cpu = processes.cpu_s(roots) - cpu
        capacity = (time.monotonic() - start) * os.cpu_count()
        foreign = max(0.0, processes.busy_s() - busy - cpu) / capacity
        passes.append(Pass(line["rows"], line["bytes"], line["seconds"], cpu, foreign))
    measurement.passes = sorted(passes, key=lambda p: p.foreign)[:wanted]
    return measurement


def _line(reader):
    text = reader.readline()
    try:
        return json.loads(text)
    except ValueError:
        raise Failure(f"expected a pass, got {text!r}") from None


def spread(values, digits):
    """Median, minimum and maximum, as every figure is given."""
    values = list(values)
    return {
        "median": round(statistics.median(values), digits),
        "min": round(min(values), digits),
        "max": round(max(values), digits),
    }
