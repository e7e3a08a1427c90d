"""What is measured: Tundish, its peers, and the limit programs. Each gives a Measurement."""

import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

from . import processes
from .measure import Failure, Measurement, Pass, take_passes

BENCH = Path(__file__).resolve().parents[1]
START_TIMEOUT_S = 120


class Tundish:
    name = "tundish"

    def __init__(self, build):
        self.server = build / "server" / "tundish"
        self.trainer = build / "tests" / "bench" / "consume"

    def measure(self, cell, data, passes):
        how = self._measure_starts if cell.mode == "start" else self._measure_served
        with tempfile.TemporaryDirectory(prefix="tundish-bench-") as scratch:
            try:
                measurement = how(cell, data, Path(scratch), passes)
            except Failure as failure:
                log = Path(scratch, "server.log").read_text(encoding="utf-8", errors="replace")
                raise Failure(f"{failure}; the server said: {log[-2000:].strip()}") from failure
        measurement.version = self._version()
        return measurement

    def _measure_served(self, cell, data, scratch, passes):
        options = ["--latency"] if cell.mode == "latency" else cell.consume
        with self._serve(cell, data, scratch, scratch / "cache") as server:
            with self._consume(scratch, options) as trainer:
                roots = [server.pid, trainer.pid]
                if cell.mode == "latency":
                    return _latency(trainer)
                return take_passes(trainer.process.stdout, roots, passes)

    def _measure_starts(self, cell, data, scratch, passes):
        """The first start finds no cache and is told apart; the others find what it left."""
        seconds = []
        for number in range(passes + 1):
            start = time.monotonic()
            with self._serve(cell, data, scratch, scratch / "cache"):
                with self._consume(scratch, ["--first"]) as trainer:
                    _await_first_batch(trainer)
                    seconds.append(time.monotonic() - start)
        return Measurement(start_s=seconds[1:], extra={"cold_start_s": round(seconds[0], 3)})

    def _serve(self, cell, data, scratch, cache):
        pipeline = BENCH / "pipelines" / f"{cell.pipeline}.yaml"
        command = [self.server, "serve", pipeline, "--root", data, "--socket", scratch / "socket"]
        environment = dict(cell.environment, TUNDISH_CACHE=str(cache))
        with open(scratch / "server.log", "a", encoding="utf-8") as log:
            return processes.Program(command, environment, stdout=log, stderr=log)

    def _consume(self, scratch, options):
        environment = {"TUNDISH_SERVER": str(scratch / "socket"), "TUNDISH_STREAM": "bench"}
        return processes.Program([self.trainer, *options], environment, stdout=subprocess.PIPE)

    def _version(self):
        done = subprocess.run([self.server, "--version"], capture_output=True, text=True)
        return done.stdout.strip()


class Peer:
    def __init__(self, name, cell, environments):
        self.name = name
        self.python = environments.python_for(name)
        self.command = [self.python, "-W", "ignore", "-m", "peers", cell.name, name]

    def measure(self, cell, data, passes):
        if cell.mode == "start":
            return self._measure_starts(data, passes)
        with self._start(data) as peer:
            if cell.mode == "latency":
                return _latency(peer)
            return take_passes(peer.process.stdout, [peer.pid], passes)

    def _measure_starts(self, data, passes):
        seconds = []
        for _ in range(passes):
            start = time.monotonic()
            with self._start(data, "--first") as peer:
                version = _await_first_batch(peer).get("version", "")
                seconds.append(time.monotonic() - start)
        return Measurement(version=version, start_s=seconds)

    def _start(self, data, *options):
        return processes.Program(
            [*self.command, "--data", data, *options],
            {"PYTHONPATH": str(BENCH), "PYTHONDONTWRITEBYTECODE": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )


def measure_limit(cell, data, build):
    """Rows a second that this machine allows, or None where that is not known."""
    if cell.limit is None:
        return None
    program = build / "tests" / "bench" / "limits" / f"limit_{cell.limit}"
    done = subprocess.run([program, data / cell.limit_file], capture_output=True, text=True)
    if done.returncode == 77:
        return None
    if done.returncode != 0:
        raise Failure(f"{program.name}: {done.stderr.strip()}")
    line = json.loads(done.stdout)
    return Measurement(
        passes=[
            Pass(line["rows"], line["bytes"], cost["seconds"], cost["cpu_seconds"], 0.0)
            for cost in line["costs"]
        ]
    )


def _await_first_batch(program):
    return _line_within(program, START_TIMEOUT_S)


def _latency(program):
    line = _line_within(program, START_TIMEOUT_S)
    if "latency_ns" not in line:
        raise Failure(f"expected latencies, got {line}")
    return Measurement(version=line.get("version", ""), extra={"latency_ns": line["latency_ns"]})


def _line_within(program, timeout_s):
    """The program's next line of JSON; what it prints is at most one line ahead of us."""
    killer = processes.threading.Timer(timeout_s, os.killpg, (program.pid, 9))
    killer.start()
    try:
        return json.loads(program.process.stdout.readline())
    except ValueError:
        raise Failure(f"{program.command[0]} printed nothing") from None
    finally:
        killer.cancel()
