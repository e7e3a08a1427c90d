"""The cells of Python: what the package costs beside the C reader, and its peers.

python-FRAMEWORK-PIPELINE: the trainer in Python and the one in C take turns at the same pipeline, each
with a server of its own; what counts is the ratio of neighbouring turns. A turn is a pass that is not
timed, after which nothing is left that was made while others had their turns, and one that is.

python: the small figures. What `import tundish` takes; what 40 columns, all touched, take more than in
C; how the trainer's own memory grows; and whether slots come back when four threads drop batches.
"""

import contextlib
import json
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from . import cells, data, processes, report
from .environments import Environments
from .measure import FIRST_TIMEOUT_S, Failure, Measurement, next_line, quietest, spread, take_pass
from .subjects import BENCH, Peer, Tundish

IMPORTS = 21
DROPPED_BATCHES = 100_000
COUNTED_EVERY_S = 2.5  # more than the server takes to look at a lane's counters
VARIANTS = {"torch": ("tundish-zero-copy", "--zero-copy"), "jax": ("tundish-jit", "--jit")}
SMALL_TIMEOUT_S = 300


@dataclass
class Subject:
    """A trainer and the server that it alone reads from."""

    name: str
    server: processes.Program
    trainer: processes.Program
    measurement: Measurement = None

    def check(self):
        """The first pass, which makes the digest."""
        self.trainer.ask()
        line = next_line(self.trainer, FIRST_TIMEOUT_S)
        self.measurement = Measurement(line.get("version", ""), digest=line["digest"])

    def turn(self):
        self.trainer.ask()
        self.trainer.ask()
        next_line(self.trainer, FIRST_TIMEOUT_S)
        return take_pass(self.trainer, [self.server.pid, self.trainer.pid])


class Trainers:
    """How the trainers of a framework are started, on servers of a cell's pipeline."""

    def __init__(self, options, python):
        self.tundish = Tundish(options.build)
        self.python = python
        self.package = options.build / "sdk" / "python"

    @contextlib.contextmanager
    def serve(self, cell, folder):
        """Of the server its process and what its trainers have in their environment."""
        with tempfile.TemporaryDirectory(prefix="tundish-bench-") as scratch:
            with self.tundish.serve(cell, folder, Path(scratch)) as server:
                yield server, {
                    "TUNDISH_SERVER": str(Path(scratch) / "socket"),
                    "TUNDISH_STREAM": "bench",
                    "TUNDISH_REPLICA": "0",
                }

    def in_c(self, environment, *words):
        return self._program([self.tundish.trainer, *words], environment)

    def in_python(self, environment, script, *words):
        environment = dict(
            environment, PYTHONPATH=f"{self.package}:{BENCH}", PYTHONDONTWRITEBYTECODE="1"
        )
        return self._program([self.python, BENCH / script, *words], environment)

    @staticmethod
    def _program(command, environment):
        return processes.Program(command, environment, stdin=subprocess.PIPE)


def measure(cell, environments, options):
    """Print a cell's lines. True if all ran that must, and all outputs were alike."""
    folder = data.ensure(cell.data, options.data, options.build)
    try:
        others, own = measure_turns(cell, folder, environments, options)
    except (Failure, OSError) as failure:
        others, own = [], report.line_of_failure(cell, "tundish", failure)
    alike = [show_beside(own, line, options.json) for line in others]
    peers = []
    for name in cell.peers if options.peers else ():
        peers.append(measure_peer(cell, name, folder, environments, options))
        alike.append(show_beside(own, peers[-1], options.json))
    report.add_ratios(own, peers, None)
    report.print_line(own, options.json)
    return all(alike) and "error" not in own


def measure_peer(cell, name, folder, environments, options):
    try:
        peer = Peer(name, cell, environments)
        return report.line_of(cell, name, peer.measure(cell, folder, options.passes))
    except (Failure, OSError) as failure:
        return report.line_of_failure(cell, name, failure)


def show_beside(own, line, as_json):
    """Print a line. True if it delivered what the own one did."""
    if wrong := report.differences(own, line):
        line["differs"] = wrong
    report.print_line(line, as_json)
    return not wrong


def measure_turns(cell, folder, environments, options):
    """The lines of the trainers in C and, besides the own, in Python, and the own."""
    trainers = Trainers(options, environments.python_of(cell.framework))
    starts = {
        "c": lambda where: trainers.in_c(where, "--turns", *cell.consume),
        "tundish": lambda where: trainers.in_python(where, "consume.py", cell.framework, *cell.consume),
    }
    if cell.framework in VARIANTS:
        name, option = VARIANTS[cell.framework]
        starts[name] = lambda where: trainers.in_python(
            where, "consume.py", cell.framework, option, *cell.consume
        )
    with contextlib.ExitStack() as stack:
        subjects = []
        for name, start in starts.items():
            server, where = stack.enter_context(trainers.serve(cell, folder))
            subjects.append(Subject(name, server, stack.enter_context(start(where))))
            subjects[-1].check()
        rounds = quietest(
            lambda: [subject.turn() for subject in subjects],
            options.passes,
            lambda turns: max(turn.foreign for turn in turns),
        )
    for subject, turns in zip(subjects, zip(*rounds)):
        subject.measurement.passes = list(turns)
        if subject.name != "c":
            subject.measurement.extra["ratio_to_c"] = ratios_of(turns, [turns[0] for turns in rounds])
    lines = [report.line_of(cell, subject.name, subject.measurement) for subject in subjects]
    own = next(line for line in lines if line["peer"] == "tundish")
    return [line for line in lines if line is not own], own


def ratios_of(turns, others):
    """Of rows a second, of neighbouring turns."""
    return spread((a.rows / a.seconds / (b.rows / b.seconds) for a, b in zip(turns, others)), 3)


def measure_small(options):
    """Print the small figures."""
    environments = Environments(options.data / "environments")
    trainers = Trainers(options, environments.python_of("numpy"))
    clicks = data.ensure("clicks", options.data, options.build)
    blocks = data.ensure("blocks-4", options.data, options.build)
    show(import_line(trainers), options.json)
    show(columns_line(trainers, clicks, options.passes), options.json)
    show(memory_line(trainers, clicks), options.json)
    show(drops_line(trainers, blocks), options.json)


def import_line(trainers):
    """In interpreters of their own; whether it brought a framework along."""
    script = (
        "import sys, time; start = time.perf_counter(); import tundish; "
        "taken = time.perf_counter() - start; "
        "print(taken, *sorted({'numpy', 'torch', 'jax', 'tensorflow'} & set(sys.modules)))"
    )
    taken, brought = [], set()
    for _ in range(IMPORTS):
        done = subprocess.run(
            [trainers.python, "-c", script],
            env={"PYTHONPATH": str(trainers.package)}, stdout=subprocess.PIPE, check=True, text=True)
        seconds, *modules = done.stdout.split()
        taken.append(float(seconds) * 1e3)
        brought.update(modules)
    return {"what": "import", "ms": spread(taken, 2), "brought": sorted(brought)}


def columns_line(trainers, folder, turns):
    """Microseconds for a batch of 40 columns that is there already, all touched, beside the C reader."""
    pairs = [
        (burst(trainers, folder, trainers.in_c, "--bursts"),
         burst(trainers, folder, trainers.in_python, "consume.py", "numpy", "--bursts"))
        for _ in range(turns)
    ]
    return {
        "what": "columns",
        "c_us": spread((c for c, _ in pairs), 1),
        "over_c_us": spread((python - c for c, python in pairs), 1),
    }


def burst(trainers, folder, start, *words):
    cell = cells.Cell(name="python-columns", data="clicks", pipeline="columns40")
    with trainers.serve(cell, folder) as (_, where), start(where, *words) as trainer:
        return next_line(trainer, SMALL_TIMEOUT_S)["batch_us"]


def memory_line(trainers, folder):
    """What a trainer's own memory grows by, from before it opens the stream to after all passes."""
    cell = cells.choose(["criteo"])[0]
    with trainers.serve(cell, folder) as (_, where):
        with trainers.in_python(where, "consume.py", "numpy", "--memory") as trainer:
            line = next_line(trainer, SMALL_TIMEOUT_S)
    return {"what": "memory", **line, "grown_mb": round(line["after_mb"] - line["before_mb"], 1)}


def drops_line(trainers, folder):
    """What the server counted of slots taken and given back, and the trainer of its own memory."""
    batches = {"BLOCK_KIB": "4", "BLOCK_REPEATS": str(DROPPED_BATCHES)}
    cell = cells.Cell(name="drops", data="blocks-4", pipeline="transport", environment=batches)
    with trainers.serve(cell, folder) as (_, where):
        with trainers.in_python(where, "drops.py", DROPPED_BATCHES) as trainer:
            line = next_line(trainer, SMALL_TIMEOUT_S)
            time.sleep(COUNTED_EVERY_S)
            lane = trainers.tundish.stream(where["TUNDISH_SERVER"])["lanes"][0]
    counted = {name: lane[name] for name in ("taken", "released", "held")}
    return {"what": "drops", **line, **counted}


def show(line, as_json):
    if as_json:
        print(json.dumps({"cell": "python", **line}), flush=True)
        return
    what = line.pop("what")
    print(f"python {what:8} " + ", ".join(f"{name} {value}" for name, value in line.items()), flush=True)
