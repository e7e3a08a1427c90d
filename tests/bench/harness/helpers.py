"""The cell `helpers`: what a helper on a processor of its own adds to a server that has half of one.

Server and busy loop share a processor; a trainer that only looks is on the helper's. One content thread each.
Rows a second are taken in turn without the helper and with it: their ratio is the figure.
"""

import json
import os
import statistics
import tempfile
from pathlib import Path

from . import data
from .cells import choose
from .measure import FIRST_TIMEOUT_S, PASS_TIMEOUT_S, Failure, next_line
from .processes import Program
from .subjects import BENCH

CELLS = ("jpeg", "criteo")
KEY = {"TUNDISH_HELPER_KEY": "the key of the benchmark"}


def _on(processor, command):
    return ["taskset", "-c", processor, *command]


class Turn:
    def __init__(self, cell, folder, scratch, build):
        self.file = [BENCH / "pipelines" / f"{cell.pipeline}.yaml", "--root", folder, "--threads", "1"]
        self.scratch, self.build = scratch, build
        self.environment = {**cell.environment, **KEY, "TUNDISH_CACHE": str(scratch / "cache")}
        self.first, self.other = sorted(os.sched_getaffinity(0))[:2]

    def _start(self, processor, *words):
        return Program(_on(processor, [self.build / "server/tundish", *words]), self.environment, name=words[0])

    def rows_s(self, *options):
        socket = self.scratch / "socket"
        reader = {"TUNDISH_SERVER": str(socket), "TUNDISH_STREAM": "bench"}
        trainer = _on(self.other, [self.build / "tests/bench/consume", "--unchecked"])
        with (
            Program(_on(self.first, ["sh", "-c", "while :; do :; done"])),
            self._start(self.first, "serve", *self.file, "--socket", socket, *options),
            Program(trainer, reader, name="the trainer") as reading,
        ):
            next_line(reading, FIRST_TIMEOUT_S)
            line = next_line(reading, PASS_TIMEOUT_S)
        return line["rows"] / line["seconds"]

    def rows_s_helped(self):
        with self._start(self.other, "helper", *self.file, "--listen", "127.0.0.1:0", "--ready-fd", "1") as helper:
            word = helper.read_line(FIRST_TIMEOUT_S).split()
            if word[:1] != ["ready"]:
                raise Failure(f"the helper did not start{helper.last_words()}")
            return self.rows_s("--helpers", f"127.0.0.1:{word[1]}")


def _measure(cell, options):
    folder = data.ensure(cell.data, options.data, options.build)
    with tempfile.TemporaryDirectory(prefix="tundish-bench-") as scratch:
        turn = Turn(cell, folder, Path(scratch), options.build)
        return [(turn.rows_s(), turn.rows_s_helped()) for _ in range(options.passes)]


def measure(options):
    for name in CELLS:
        pairs = _measure(next(cell for cell in choose([name]) if cell.name == name), options)
        ratios = sorted(helped / alone for alone, helped in pairs)
        line = {
            "cell": "helpers",
            "data": name,
            "rows_s": round(statistics.median(alone for alone, _ in pairs)),
            "rows_s_helped": round(statistics.median(helped for _, helped in pairs)),
            "ratio": round(statistics.median(ratios), 2),
            "ratio_min": round(ratios[0], 2),
            "ratio_max": round(ratios[-1], 2),
        }
        if options.json:
            print(json.dumps(line), flush=True)
        else:
            print(
                f"helpers: {name}: {line['rows_s']} rows/s alone, {line['rows_s_helped']} with a helper: "
                f"{line['ratio']} times as many ({line['ratio_min']} to {line['ratio_max']})",
                flush=True,
            )
