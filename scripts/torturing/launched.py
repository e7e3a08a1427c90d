"""tundish-launch: it, its servers or its trainers are killed, and it is started again at places."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from . import source
from .job import BUILD, EPOCHS, HANGS_S, KEYS, ROOT, ROWS, Job
from .ledger import Failure, Ledger, require_rows

sys.path.insert(0, str(ROOT / "tests/system"))
from store import Store  # noqa: E402

MARK = "TUNDISH_TORTURE"


class Launched(Job):
    shapes = [(1, 2)]  # nodes, and replicas of each; any of them each time it is started
    tundish = str(BUILD / "server/tundish")
    ENDINGS = 3  # before it may come to its end

    @property
    def distribute(self):
        return f"{{replicas: {self.replicas}}}"

    def __init__(self, folder, seed):
        self.nodes, self.replicas = self.shapes[0]
        super().__init__(folder, seed)

    def run(self):
        several = any(nodes > 1 for nodes, _ in self.shapes)
        if several and not (shutil.which("mpirun") and (BUILD / "server/tundish-mpi.so").exists()):
            self.troubles["left out: no MPI"] += 1
            return
        (self.folder / "tmp").mkdir()
        self.ledgers = [Ledger(f"rank {rank}") for rank in range(self.nodes * self.replicas)]
        self.places = [{} for _ in self.ledgers]  # tokens, by the batch before
        for rank in range(len(self.ledgers)):
            self.file_of("place", rank).write_text("")
        for number in range(self.ENDINGS):
            launcher = self.launch()
            self.wait_for_places(launcher)
            time.sleep(self.random.uniform(0, 0.5))
            self.end(launcher)
            self.take()
        launcher = self.launch()
        self.wait_until_gone(launcher)
        self.take()
        if launcher.returncode != 0:
            raise Failure(f"tundish-launch ended with status {launcher.returncode}")
        self.check_steps()
        batches = [batch for ledger in self.ledgers for batch in ledger.batches.items()]
        require_rows("the ranks", batches, EPOCHS, ROWS)

    def check_steps(self):
        for ledger in self.ledgers:
            ledger.require(KEYS)

    def file_of(self, what, rank):
        return self.folder / f"{what}.{rank}"

    def launch(self):
        self.change_shape()
        out, place = shlex.quote(f"{self.folder}/out"), shlex.quote(f"{self.folder}/place")
        reader = f"{shlex.quote(self.reader)} --places --delay-ms 2"
        if self.random.random() < 0.5:  # gives each batch back after it has the next
            reader += " --late"
        command = [sys.executable, "-B", str(ROOT / "scripts/tundish-launch"), str(self.file)]
        command += ["--tundish", self.tundish, "--replicas", str(self.replicas)]
        command += ["--cache", str(self.folder / "cache"), "--admin", "none"]
        command += ["--nodes", str(self.nodes)] if self.nodes > 1 else []
        for rank in range(len(self.ledgers)):
            self.file_of("out", rank).write_text("")
        with open(self.folder / "log", "a", encoding="utf-8") as log:
            return subprocess.Popen(
                [*command, "--", "sh", "-c", f"exec {reader} $(cat {place}.$RANK) >{out}.$RANK"],
                env=dict(self.environment, TMPDIR=str(self.folder / "tmp"), **{MARK: str(self.folder)}),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip

    def change_shape(self):
        """The rows of a step go to other ranks then, so all go back to the last step that all have
        a place after."""
        before, shape = self.distribute, self.random.choice(self.shapes)
        common = set.intersection(*map(set, self.places))
        if shape == (self.nodes, self.replicas) or (any(self.places) and not common):
            return
        self.nodes, self.replicas = shape
        self.file.write_text(self.file.read_text().replace(before, self.distribute))
        if not common:
            return
        last = max(common)
        for rank, (ledger, places) in enumerate(zip(self.ledgers, self.places)):
            ledger.forget_after(last)
            self.places[rank] = {key: token for key, token in places.items() if key <= last}
            self.file_of("place", rank).write_text(f"--place {places[last]}")

    def wait_for_places(self, launcher):
        """Each trainer has a place that it can be started at again, or all are through."""
        until = time.monotonic() + HANGS_S
        while launcher.poll() is None and not all(
            "\nplace " in self.file_of("out", rank).read_text() for rank in range(len(self.ledgers))
        ):
            if time.monotonic() > until:
                raise Failure(f"the launcher's trainers have nothing after {HANGS_S} s")
            time.sleep(0.02)

    def processes(self):
        """{pid: command} of all that the launcher started, and itself."""
        mark, found = f"{MARK}={self.folder}".encode(), {}
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                if mark in Path(f"/proc/{name}/environ").read_bytes().split(b"\0"):
                    found[int(name)] = Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0")
            except OSError:
                continue  # it has just ended, or is another user's
        self.pids = list({*self.pids, *found})
        return found

    def end(self, launcher):
        """One of them is killed, or the launcher is told to end."""
        started = self.processes()
        servers = [pid for pid, command in started.items() if b"serve" in command[:2]]
        trainers = [pid for pid, command in started.items() if command[0] == self.reader.encode()]
        kind = self.random.choice(["launcher", "server", "trainer", "term"])
        victims = {"server": servers, "trainer": trainers}.get(kind, [launcher.pid])
        if launcher.poll() is None and victims:
            number = signal.SIGTERM if kind == "term" else signal.SIGKILL
            try:
                os.kill(self.random.choice(victims), number)
            except ProcessLookupError:
                pass
            self.killed[f"{kind}s"] += kind != "term"
            self.troubles[f"launched: {kind}"] += 1
        self.wait_until_gone(launcher)

    def wait_until_gone(self, launcher):
        until = time.monotonic() + HANGS_S
        while launcher.poll() is None or self.processes():
            if time.monotonic() > until:
                raise Failure(f"the launcher has left {self.processes()}")
            time.sleep(0.02)

    def take(self):
        """The lines that the trainers have printed; the last may be half a one."""
        for rank, ledger in enumerate(self.ledgers):
            last, has_place = None, True
            lines = self.file_of("out", rank).read_text().split("\n")[:-1]
            for line in lines:
                word, *numbers = line.split()
                if word == "batch":
                    epoch, step, *values = map(int, numbers)
                    last, has_place = (epoch, step), False
                    ledger.take(last, values)
                elif word == "place":
                    has_place = True
                    self.places[rank][last] = numbers[0]
                    self.file_of("place", rank).write_text(f"--place {numbers[0]}")
                elif word == "status" and numbers[0] not in ("E_PEER_LOST", "E_SERVER_GONE"):
                    raise Failure(f"{ledger.name}: {line}")
            if not has_place:
                ledger.allow([last])

    def close(self):
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


class LaunchedNodes(Launched):
    """The same rows to the same ranks, on however many nodes."""

    shapes = [(2, 2), (1, 4), (4, 1)]

    @property
    def distribute(self):
        return f"{{replicas: {self.replicas}, auto_shard: DATA}}"


class LaunchedFiles(Launched):
    """Each node reads files of its own, and comes to its end with them."""

    shapes = [(2, 1)]
    sources = [kind for kind in source.KINDS if not kind.startswith(("csv", "webdataset"))]
    distribute = "{replicas: 1, auto_shard: FILE}"

    def check_steps(self):
        """How many steps an epoch has depends on the files: their rows are what counts."""


class LaunchedApart(Launched):
    """Each node has some of the files, in a folder of its own."""

    shapes = [(2, 1)]
    sources = list(source.KINDS)
    distribute = "{replicas: 1, auto_shard: DATA, files: local}"

    def rows_in_order(self):
        for node in range(2):
            (self.folder / f"node-{node}").mkdir()

        def write(number, data):
            (self.folder / f"node-{number % 2}" / f"part-{number}").write_bytes(data)
            return f"part-{number}"

        return source.stages_of(self.source, write, ROWS)

    def launch(self):
        """With a program that serves the pipeline of its node's folder."""
        script = self.folder / "tundish"
        script.write_text(f"""#!/bin/sh
case $1 in serve)
    shift 2
    set -- serve {self.folder}/node-$OMPI_COMM_WORLD_RANK/pipeline.yaml "$@" ;;
esac
exec {super().tundish} "$@"
""")
        script.chmod(0o755)
        for node in range(2):
            (self.folder / f"node-{node}" / "pipeline.yaml").write_text(self.file.read_text())
        self.tundish = str(script)
        return super().launch()


class LaunchedStore(Launched):
    """The files are objects of a store that fails now and then, each fetched by one node."""

    shapes = [(2, 1), (1, 2)]
    sources = list(source.KINDS)

    @property
    def distribute(self):
        return f"{{replicas: {self.replicas}, auto_shard: DATA}}"

    def __init__(self, folder, seed):
        self.store = Store()
        super().__init__(folder, seed)
        self.store.fail("status", self.random.randrange(4), "part-", (503, {}))
        self.store.fail("reset", self.random.randrange(4), "part-")

    def head(self):
        once = ", fetch: once" if self.random.random() < 0.7 else ""
        cache = f", cache: '{self.folder}/parts'" if self.random.random() < 0.5 else ""
        return f"remote: {{part: 64KiB{once}{cache}}}\n"

    def rows_in_order(self):
        def write(number, data):
            self.store.put(f"/bucket/part-{number}", data)
            return f"{self.store.url}/bucket/part-{number}"

        return source.stages_of(self.source, write, ROWS)

    def close(self):
        super().close()
        self.store.close()
