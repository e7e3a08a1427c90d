"""Takes passes from a program that prints a line of JSON after each, and keeps the quiet ones."""

import json
import os
import statistics
import time
from dataclasses import dataclass, field

from . import processes

QUIET = 0.06  # other processes may use this share of the machine during a pass
TRIES = 3  # times the passes asked for, if the machine is not quiet
FIRST_TIMEOUT_S = 180  # for starting and the pass that is checked
PASS_TIMEOUT_S = 90
BUDGET_S = 30  # one pass more is not begun after this


class Failure(Exception):
    """The program ended, or said something else than a pass."""


@dataclass(frozen=True)
class Pass:
    rows: int
    bytes: int
    seconds: float
    cpu_s: float
    trainer_cpu_s: float
    foreign: float  # the share of the machine that others used meanwhile


@dataclass
class Measurement:
    version: str = ""
    peak_pss_mb: float = 0.0
    digest: dict | None = None
    passes: list = field(default_factory=list)
    start_s: list = field(default_factory=list)  # from process start to first batch
    extra: dict = field(default_factory=dict)


def take_passes(program, roots, wanted, budget_s=BUDGET_S, least_s=0):
    """Measure a running program. The first pass is a check; slow programs get fewer than wanted, and of quick
    ones several count as one until they took `least_s`."""
    measurement = Measurement()
    memory = processes.PeakMemory(roots)
    try:
        line = next_line(program, FIRST_TIMEOUT_S)
    finally:
        measurement.peak_pss_mb = memory.stop()
    measurement.version = line.get("version", "")
    measurement.digest = line.get("digest")
    if line.get("near"):
        measurement.extra["near"] = True
    measurement.passes = quietest(
        lambda: take_pass(program, roots, least_s), wanted, lambda one: one.foreign, budget_s
    )
    return measurement


def quietest(take, wanted, foreign, budget_s=BUDGET_S):
    """As many of what is taken as wanted, those in which others used least of the machine."""
    taken, stop = [], time.monotonic() + budget_s
    while _wants_more(list(map(foreign, taken)), wanted) and (not taken or time.monotonic() < stop):
        taken.append(take())
    return sorted(taken, key=foreign)[:wanted]


def take_pass(program, roots, least_s=0):
    """What happens until the program's next line; until its next ones, if they are quicker than `least_s`."""
    start, busy, cpu = time.monotonic(), processes.busy_s(), processes.cpu_s(roots)
    trainer = processes.own_cpu_s(program.pid)
    lines = [next_line(program, PASS_TIMEOUT_S)]
    while time.monotonic() - start < least_s:
        lines.append(next_line(program, PASS_TIMEOUT_S))
    trainer = processes.own_cpu_s(program.pid) - trainer
    cpu = processes.cpu_s(roots) - cpu
    capacity = (time.monotonic() - start) * os.cpu_count()
    foreign = max(0.0, processes.busy_s() - busy - cpu) / capacity
    rows, size, seconds = (sum(line[name] for line in lines) for name in ("rows", "bytes", "seconds"))
    return Pass(rows, size, seconds, cpu, trainer, foreign)


def _wants_more(foreign, wanted):
    quiet = sum(share < QUIET for share in foreign)
    return len(foreign) < wanted * TRIES and quiet < wanted


def next_line(program, timeout_s):
    """What a program says next, as an object."""
    text = program.read_line(timeout_s)
    try:
        return json.loads(text)
    except ValueError:
        what = f"said {text!r}" if text else f"ended, or said nothing for {timeout_s} s"
        raise Failure(f"{program.name} {what}{program.last_words()}") from None


def spread(values, digits):
    """Median, minimum and maximum, as every figure is given."""
    values = list(values)
    return {
        "median": round(statistics.median(values), digits),
        "min": round(min(values), digits),
        "max": round(max(values), digits),
    }
