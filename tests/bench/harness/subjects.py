"""What is measured: Tundish, its peers, and the limit programs. Each gives a Measurement."""

import contextlib
import json
import subprocess
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from . import processes
from .measure import Failure, Measurement, Pass, next_line, take_pass, take_passes

BENCH = Path(__file__).resolve().parents[1]
START_TIMEOUT_S = 120
OF_THREADS = {"budget_s": 1.5, "least_s": 0.3}  # passes with one number of threads among several
PEERS_SEGMENTS = ("psm_", "sem.mp-", "torch_", "00000")  # the last: of MosaicML Streaming


class Tundish:
    name = "tundish"

    def __init__(self, build, threads=None):
        self.server = build / "server" / "tundish"
        self.options = ["--threads", str(threads)] if threads else []
        self.taking = OF_THREADS if threads else {}
        self.trainer = build / "tests" / "bench" / "consume"

    def measure(self, cell, data, passes):
        modes = {
            "start": self._measure_starts,
            "cold": self._measure_cold,
            "replicas": self._measure_replicas,
        }
        how = modes.get(cell.mode, self._measure_served)
        with tempfile.TemporaryDirectory(prefix="tundish-bench-") as scratch:
            measurement = how(cell, data, Path(scratch), passes)
        measurement.version = self._version()
        return measurement

    def _measure_served(self, cell, data, scratch, passes):
        with self.serve(cell, data, scratch) as server:
            with self.consume(scratch, cell.consume) as trainer, _blaming(server):
                if cell.mode == "latency":
                    return _latency(trainer)
                return take_passes(trainer, [server.pid, trainer.pid], passes, **self.taking)

    def measure_stored(self, cell, data, passes):
        """Passes, and what the server says of the lanes that it had for them."""
        with tempfile.TemporaryDirectory(prefix="tundish-bench-") as folder:
            scratch = Path(folder)
            with self.serve(cell, data, scratch) as server:
                with self.consume(scratch, cell.consume) as trainer, _blaming(server):
                    measurement = take_passes(trainer, [server.pid, trainer.pid], passes)
                    return measurement, self.stream(scratch / "socket")

    def stream(self, socket):
        """What the server says of its only stream."""
        command = [self.server, "status", "--json", "--interval", "10", "--socket", socket]
        out = subprocess.run(command, capture_output=True, check=True)
        return json.loads(out.stdout)["streams"][0]

    def _measure_starts(self, cell, data, scratch, passes):
        """The first start finds no cache and is told apart; the others find what it left."""
        seconds = []
        for _ in range(passes + 1):
            forget(scratch / "cache", cell.forget)
            start = time.monotonic()
            with self.serve(cell, data, scratch) as server:
                with self.consume(scratch, ["--first"]) as trainer, _blaming(server):
                    next_line(trainer, START_TIMEOUT_S)
                    seconds.append(time.monotonic() - start)
        return Measurement(start_s=seconds[1:], extra={"cold_start_s": round(seconds[0], 3)})

    def _measure_cold(self, cell, data, scratch, passes):
        """One pass of each server; of the first no time is taken: it makes the tables."""
        taken = []
        for _ in range(passes + 1):
            forget(scratch / "cache", cell.forget)
            with self.serve(cell, data, scratch) as server:
                with self.consume(scratch, ["--unchecked"]) as trainer, _blaming(server):
                    taken.append(take_pass(trainer, [server.pid, trainer.pid]))
        return Measurement(passes=taken[1:])

    def _measure_replicas(self, cell, data, scratch, _passes):
        """The server's memory once each of its trainers has read everything."""
        memory = {}
        for count in (1, 4):
            replicated = replace(cell, environment={"REPLICAS": str(count)})
            with self.serve(replicated, data, scratch) as server, contextlib.ExitStack() as all_:
                trainers = [
                    all_.enter_context(self.consume(scratch, ["--unchecked"], replica))
                    for replica in range(count)
                ]
                with _blaming(server):
                    for trainer in trainers:
                        next_line(trainer, START_TIMEOUT_S)
                memory[f"memory_mb_{count}_replicas"] = processes.memory_mb(server.pid)
        return Measurement(extra=memory)

    def serve(self, cell, data, scratch):
        pipeline = BENCH / "pipelines" / f"{cell.pipeline}.yaml"
        command = [self.server, "serve", pipeline, "--root", data, "--socket", scratch / "socket"]
        command += self.options
        environment = dict(cell.environment, TUNDISH_CACHE=str(scratch / "cache"))
        return processes.Program(command, environment, name="the server")

    def consume(self, scratch, options, replica=0):
        environment = {
            "TUNDISH_SERVER": str(scratch / "socket"),
            "TUNDISH_STREAM": "bench",
            "TUNDISH_REPLICA": str(replica),
        }
        return processes.Program([self.trainer, *options], environment)

    def _version(self):
        done = subprocess.run([self.server, "--version"], capture_output=True, text=True)
        return done.stdout.strip()


def forget(cache, beginnings):
    """Take from the cache what a cold start does not find there."""
    for path in cache.iterdir() if cache.is_dir() else ():
        if path.name.startswith(tuple(beginnings)):
            path.unlink()


@contextlib.contextmanager
def _blaming(server):
    """What a trainer could not read, the server may explain."""
    try:
        yield
    except Failure as failure:
        raise Failure(f"{failure}; the server's last words{server.last_words()}") from failure


@contextlib.contextmanager
def segments_removed():
    """Peers that are killed leave shared memory behind."""
    folder = Path("/dev/shm")
    before = set(folder.iterdir())
    try:
        yield
    finally:
        for path in set(folder.iterdir()) - before:
            if path.name.startswith(PEERS_SEGMENTS):
                path.unlink(missing_ok=True)


class Peer:
    def __init__(self, name, cell, environments):
        self.name = name
        if cell.framework:
            self.python = environments.python_of(cell.framework, name)
        else:
            self.python = environments.python_for(name)
        self.command = [self.python, "-W", "ignore", "-m", "peers", cell.name, name]
        self.environment = dict(
            cell.environment, PYTHONPATH=str(BENCH), PYTHONDONTWRITEBYTECODE="1"
        )

    def measure(self, cell, data, passes):
        with segments_removed():
            return self._measure(cell, data, passes)

    def _measure(self, cell, data, passes):
        if cell.mode == "start":
            return self._measure_starts(data, passes)
        with self._start(data) as peer:
            if cell.mode == "latency":
                return _latency(peer)
            return take_passes(peer, [peer.pid], passes)

    def _measure_starts(self, data, passes):
        seconds = []
        for _ in range(passes):
            start = time.monotonic()
            with self._start(data, "--first") as peer:
                version = next_line(peer, START_TIMEOUT_S).get("version", "")
                seconds.append(time.monotonic() - start)
        return Measurement(version=version, start_s=seconds)

    def _start(self, data, *options):
        command = [*self.command, "--data", data, *options]
        return processes.Program(command, self.environment, name=self.name)


def measure_limit(cell, data, build):
    """What this machine allows, or None where that is not known."""
    if cell.limit is None:
        return None
    program = build / "tests" / "bench" / "limits" / f"limit_{cell.limit}"
    argument = cell.limit_argument or data / cell.limit_file
    done = subprocess.run([program, argument], capture_output=True, text=True)
    if done.returncode == 77:
        return None
    if done.returncode != 0:
        raise Failure(f"{program.name}: {done.stderr.strip()}")
    line = json.loads(done.stdout)
    if cell.mode == "latency":
        return Measurement(extra={"latency_ns": line["latency_ns"]})
    return Measurement(
        passes=[
            Pass(line["rows"], line["bytes"], cost["seconds"], cost["cpu_seconds"], 0.0, 0.0)
            for cost in line["costs"]
        ]
    )


def _latency(program):
    line = next_line(program, START_TIMEOUT_S)
    if "latency_ns" not in line:
        raise Failure(f"expected latencies, got {line}")
    return Measurement(version=line.get("version", ""), extra={"latency_ns": line["latency_ns"]})
