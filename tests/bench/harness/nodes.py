"""The cell `nodes`: what it costs to share a stream over two ranks, where one server could do it.

The click log under DATA, every file at both: one server with two threads and two trainers, and two
ranks of an MPI job with one thread and one trainer each, on the same processors, in turns. What is
compared is rows a second and processor time a row, as the ratio of neighbouring turns: the machine's
speed falls out of it. Beside them stands what the ranks said to each other meanwhile, and whether
any step waited for it.
"""

import contextlib
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from . import data, processes
from .measure import Failure, next_line, spread

BENCH = Path(__file__).resolve().parents[1]
PIPELINES = ("criteo", "tfrecord")
TRAINERS = 2
START_S = 180
MPIRUN = ("mpirun", "--oversubscribe", "--bind-to", "none", "--mca", "btl_vader_single_copy_mechanism",
          "none", *(("--allow-run-as-root",) if os.geteuid() == 0 else ()))


class Turn:
    """`ranks` servers with as many trainers in all, and as many threads."""

    def __init__(self, build, pipeline, files, folder, ranks, pinned):
        self.build, self.folder, self.ranks, self.pinned = build, folder, ranks, pinned
        self.commands = [self._command(pipeline, files, rank) for rank in range(ranks)]

    def _command(self, pipeline, files, rank):
        each = TRAINERS // self.ranks
        serve = [self.build / "server/tundish", "serve", BENCH / f"pipelines/{pipeline}.yaml",
                 "--root", files, "--socket", self._socket(rank), "--replicas", each, "--threads", each]
        return self._placed(rank, map(str, serve))

    def _placed(self, rank, command):
        """Each rank and its trainer on a processor of their own, where asked; one has them all."""
        if self.pinned and self.ranks > 1:
            return ["taskset", "-c", str(rank % os.cpu_count()), *command]
        return list(command)

    def _socket(self, rank):
        return self.folder / f"server.{rank}"

    def _serve(self):
        """Ready when every socket is there."""
        words = self.commands[0]
        if self.ranks > 1:
            words = list(MPIRUN)
            for rank, command in enumerate(self.commands):
                words += [":"] * bool(rank) + ["-n", "1", *command]
        environment = {"TUNDISH_CACHE": str(self.folder / "cache"), "AUTO_SHARD": "DATA"}
        program = processes.Program(words, environment, "the servers")
        until = time.monotonic() + START_S
        while not all(self._socket(rank).exists() for rank in range(self.ranks)):
            if program.process.poll() is not None or time.monotonic() > until:
                raise Failure(f"the servers did not start{program.last_words()}")
            time.sleep(0.02)
        return program

    def _train(self, replica):
        rank, each = divmod(replica, TRAINERS // self.ranks)
        environment = {"TUNDISH_SERVER": str(self._socket(rank)), "TUNDISH_STREAM": "bench",
                       "TUNDISH_REPLICA": str(each)}
        command = self._placed(rank, [str(self.build / "tests/bench/consume"), "--unchecked"])
        return processes.Program(command, environment)

    def measure(self, seconds):
        """Figures of a window behind the first pass, which warms all caches."""
        with contextlib.ExitStack() as all_:
            server = all_.enter_context(self._serve())
            trainers = [all_.enter_context(self._train(replica)) for replica in range(TRAINERS)]
            for trainer in trainers:
                next_line(trainer, START_S)
            roots = [server.pid, *(trainer.pid for trainer in trainers)]
            before = self._look(roots)
            time.sleep(seconds)
            now = self._look(roots)
        return {name: now[name] - before[name] for name in now}

    def _look(self, roots):
        """The time, and what has been done and said until now."""
        look = {"seconds": time.monotonic(), "cpu_s": processes.cpu_s(roots), "rows": 0, "messages": 0,
                "waits": 0}
        for rank in range(self.ranks):
            figures = self._figures(rank)
            look["rows"] += figures["streams"][0]["rows"]
            for link in figures["links"]:
                look["messages"] += link["messages_sent"]
                look["waits"] += link["waits"]
        return look

    def _figures(self, rank):
        command = [self.build / "server/tundish", "status", "--json", "--interval", "1", "--socket",
                   self._socket(rank)]
        return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)


def measure(options):
    if not (options.build / "server/tundish-mpi.so").exists() or not shutil.which("mpirun"):
        print("nodes: not measured, there is no MPI here", flush=True)
        return
    files = data.ensure("clicks", options.data, options.build)
    for pipeline in PIPELINES:
        for pinned in (False, True):
            _show(options, _compare(options, pipeline, files, pinned))


def _compare(options, pipeline, files, pinned):
    """One server and two ranks in turns; the first pair only makes tables and indexes."""
    pairs = []
    with tempfile.TemporaryDirectory(prefix="tundish-nodes-") as name:
        for _ in range(options.passes):
            turns = (Turn(options.build, pipeline, files, Path(name), n, pinned) for n in (1, TRAINERS))
            pairs.append([turn.measure(options.seconds) for turn in turns])
    ratios = [_speed(two) / _speed(one) for one, two in pairs]
    costs = [_cost(two) / _cost(one) for one, two in pairs]
    return {
        "cell": "nodes",
        "pipeline": pipeline,
        "pinned": pinned,
        "rows_per_s": round(statistics.median(_speed(one) for one, _ in pairs)),
        "rows_per_s_of_two": round(statistics.median(_speed(two) for _, two in pairs)),
        "cpu_us_per_row": round(statistics.median(_cost(one) for one, _ in pairs), 3),
        "cpu_us_per_row_of_two": round(statistics.median(_cost(two) for _, two in pairs), 3),
        "ratio": spread(ratios, 3),
        "ratio_of_cpu": spread(costs, 3),
        "messages_per_s": round(sum(two["messages"] for _, two in pairs)
                                / sum(two["seconds"] for _, two in pairs), 1),
        "steps_that_waited": sum(two["waits"] for _, two in pairs),
    }


def _speed(turn):
    return turn["rows"] / turn["seconds"]


def _cost(turn):
    return turn["cpu_s"] / turn["rows"] * 1e6


def _show(options, line):
    if options.json:
        print(json.dumps(line), flush=True)
        return
    rates, costs = line["ratio"], line["ratio_of_cpu"]
    print(
        f"nodes: {line['pipeline']}{', a processor each' if line['pinned'] else ''}: one server "
        f"{line['rows_per_s']:,} rows/s at {line['cpu_us_per_row']} us of CPU a row, two ranks "
        f"{line['rows_per_s_of_two']:,} at {line['cpu_us_per_row_of_two']}: {rates['median']} of its rate "
        f"({rates['min']} to {rates['max']}), {costs['median']} of its CPU ({costs['min']} to "
        f"{costs['max']}); {line['messages_per_s']} messages/s, {line['steps_that_waited']} waits for them",
        flush=True,
    )
