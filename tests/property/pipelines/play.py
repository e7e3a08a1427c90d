"""A pipeline planned, peeked at, served and read, by the real programs."""

import json
import os
import select
import shutil
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

BUILD = Path(os.environ.get("TUNDISH_BUILD") or Path(__file__).parents[3] / "build").resolve()
TUNDISH = str(BUILD / "server/tundish")
READ_ALL = str(BUILD / "tests/property/read_all")


BATCHES_MAX = 20000  # of a pipeline; none that is drawn has so many


class Wrong(Exception):
    """What must not happen, whatever the pipeline: a crash, a hang, something left behind."""


@dataclass
class Output:
    """What one reader or one worker's replica was given."""

    batches: list = field(default_factory=list)  # (epoch, step, columns)
    shards: list = field(default_factory=list)  # beside them: (shard, is its end)
    ends: int = 0
    end: str | None = None  # how it ended, in peek's words
    message: str = ""
    token: str = ""


@dataclass
class Peeked:
    refusal: list | None = None
    element_spec: dict = field(default_factory=dict)
    outputs: dict = field(default_factory=dict)  # by (worker, replica)
    end: str = ""  # "end", "max_steps" or "error"
    message: str = ""


class Player:
    """Plays pipelines in a folder of its own. patience_s: without a word from a program that is at
    work, it counts as hung."""

    def __init__(self, folder, patience_s):
        self.folder, self.patience_s = Path(folder), patience_s
        self.file = self.folder / "pipeline.yaml"
        self.socket = self.folder / "server"
        self.log = self.folder / "log"
        self.commands = []  # as they can be given again
        self.pids = []
        self.processes = []
        self.environment = dict(
            os.environ, TUNDISH_STREAM="case", TUNDISH_CACHE=str(self.folder / "cache"),
            TUNDISH_SERVER=str(self.socket),
        )  # fmt: skip

    def begin(self, pipeline):
        self.pipeline = pipeline
        self.commands.clear()
        self.file.write_text(pipeline.text())
        self.log.write_bytes(b"")
        shutil.rmtree(self.folder / "state", ignore_errors=True)
        (self.folder / "state").mkdir()

    def end(self):
        """Nothing that was started is still there."""
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
        self.processes.clear()
        own = tuple(f"tundish-{pid}-" for pid in self.pids)
        left = [name for name in os.listdir("/dev/shm") if own and name.startswith(own)]
        for name in left:
            os.unlink(f"/dev/shm/{name}")
        self.pids.clear()
        return left

    # --- in one process ---------------------------------------------------------------------

    def plan(self):
        """The status of `tundish plan`."""
        status, _, _ = self._run(["plan", *self._seed(), "--num-workers", str(self.pipeline.workers)])
        return status

    def peek(self, workers):
        bounds = ["--epochs", str(self.pipeline.epochs), "--steps", str(self.pipeline.steps)]
        status, out, err = self._run(
            ["peek", "--json", *self._seed(), *bounds, "--num-workers", str(workers)]
        )
        return self._peeked(status, out, err)

    def explain(self, workers, worker, replica, epoch, step):
        """What `tundish explain` says of a batch."""
        where = ["--num-workers", workers, "--worker", worker, "--replica", replica,
                 "--epoch", epoch, "--step", step]  # fmt: skip
        status, out, err = self._run(
            ["explain", "--json", "--show", *self._seed(), *map(str, where)]
        )
        if status != 0:
            raise Wrong(f"explain ends with {status}: {err[-500:]}")
        return json.loads(out)

    def _seed(self):
        return ["--seed", str(self.pipeline.seed_option)]

    def _run(self, arguments):
        command = [TUNDISH, *arguments, str(self.file)]
        self.commands.append(command)
        try:
            done = subprocess.run(
                command, env=self.environment, capture_output=True, timeout=self.patience_s,
                stdin=subprocess.DEVNULL, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise Wrong(f"{arguments[0]} has not ended after {self.patience_s} s") from None
        err = done.stderr.decode("utf-8", "replace")
        require_health(arguments[0], done.returncode, err)
        return done.returncode, done.stdout.decode("utf-8", "replace"), err

    @staticmethod
    def _peeked(status, out, err):
        peeked = Peeked()
        for line in map(json.loads, out.splitlines()):
            if "element_spec" in line:
                peeked.element_spec = line["element_spec"]
            elif "columns" in line:
                key = line["worker"], line["replica"]
                batch = line["epoch"], line["step"], line["columns"]
                peeked.outputs.setdefault(key, Output()).batches.append(batch)
            elif "worker" in line and "end" in line:
                end = line["end"]
                peeked.end = end if isinstance(end, str) else "error"
                peeked.message = "" if isinstance(end, str) else end["message"]
            elif "end" in line:
                peeked.refusal = line["end"]["errors"]
        if peeked.refusal is None and not peeked.end:
            raise Wrong(f"peek printed no end (status {status}): {err[-300:]}")
        return peeked

    # --- served -----------------------------------------------------------------------------

    def serve(self):
        """A server that says it is ready. None: it refused the file."""
        command = [TUNDISH, "serve", *self._seed(), "--threads", str(self.pipeline.threads)]
        if self.pipeline.state:
            command += ["--state", str(self.folder / "state")]
        command.append(str(self.file))
        self.commands.append(command)
        read_end, write_end = os.pipe()
        with open(self.log, "ab") as log:
            server = subprocess.Popen(
                [*command, "--ready-fd", str(write_end)], env=self.environment, stderr=log,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, pass_fds=[write_end],
            )  # fmt: skip
        self.processes.append(server)
        self.pids.append(server.pid)
        os.close(write_end)
        ready, _, _ = select.select([read_end], [], [], self.patience_s)
        word = os.read(read_end, 16) if ready else b"hung"
        os.close(read_end)
        if word == b"ready\n":
            return server
        if word == b"hung":
            raise Wrong("serve does not become ready")
        require_health("serve", server.wait(), self.log_text())
        return None

    def stop(self, server):
        """By SIGTERM, as a drain."""
        server.send_signal(signal.SIGTERM)
        try:
            status = server.wait(self.patience_s)
        except subprocess.TimeoutExpired:
            raise Wrong(f"the server does not end at SIGTERM:\n{self.log_text()[-2000:]}") from None
        require_health("serve", status, self.log_text())
        if status != 0:
            raise Wrong(f"the server ended with status {status}:\n{self.log_text()[-2000:]}")

    def log_text(self):
        return self.log.read_text(encoding="utf-8", errors="replace")

    def names(self):
        """The readers of the pipeline."""
        pipeline = self.pipeline
        if pipeline.distribute.get("from_function"):
            return [f"session-{i}/default:0" for i in range(pipeline.readers)]
        if pipeline.delivery == "queue":
            return [f"default:{i}" for i in range(pipeline.readers)]
        if "evaluation_shards" in pipeline.distribute:
            return [f"default:{i}" for i in range(pipeline.readers)]
        return [f"group-{g}:{r}" for g in range(pipeline.groups) for r in range(pipeline.replicas)]

    def start_readers(self, steps=0, survive=False, tokens=None):
        command = [READ_ALL, "--steps", str(steps)]
        command += ["--in-turn"] * self.pipeline.in_turn + ["--survive"] * survive
        for name in self.names():
            token = (tokens or {}).get(name)
            command.append(f"{name}:{token}" if token else name)
        self.commands.append(command)
        with open(self.log, "ab") as log:
            process = subprocess.Popen(
                command, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=log,
            )  # fmt: skip
        os.set_blocking(process.stdout.fileno(), False)
        self.processes.append(process)
        return Readers(self, process)


class Readers:
    """A process of readers, and what they have said so far."""

    def __init__(self, player, process):
        self.player, self.process = player, process
        self.outputs = {name: Output() for name in player.names()}
        self.rest = b""
        self.count = 0  # batches

    def read(self, until=0):
        """Until so many batches have come, or (0) to the end of all. False: they ended before."""
        while not until or self.count < until:
            if not select.select([self.process.stdout], [], [], self.player.patience_s)[0]:
                raise Wrong(f"the readers hang: {self.standing()}\n{self.player.log_text()[-2000:]}")
            data = os.read(self.process.stdout.fileno(), 1 << 20)
            if not data:
                require_health("read_all", self.process.wait(), self.player.log_text())
                return False
            *lines, self.rest = (self.rest + data).split(b"\n")
            for line in lines:
                self.take(*json.loads(line))
        return True

    def take(self, kind, name, *words):
        output = self.outputs[name]
        if kind == "batch":
            epoch, step, columns, output.token, shard, is_end = words
            output.batches.append((epoch, step, columns))
            output.shards.append((shard, is_end))
            self.count += 1
            if self.count > BATCHES_MAX:
                raise Wrong(f"the readers come to no end: {self.standing()}")
        elif kind == "end":
            output.ends += 1
        else:
            output.end, output.message = words

    def kill(self):
        self.process.kill()
        self.process.wait()

    def standing(self):
        return {name: (len(o.batches), o.ends, o.end) for name, o in self.outputs.items()}


def require_health(program, status, err):
    """It neither crashed nor did a sanitizer speak."""
    spoke = [line for line in err.splitlines() if "Sanitizer" in line or "runtime error:" in line]
    if status < 0 or spoke:
        how = signal.Signals(-status).name if status < 0 else f"status {status}"
        raise Wrong(f"{program} ended by {how}: {' | '.join(spoke[:3])}\n{err[-3000:]}")
