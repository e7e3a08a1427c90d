"""tundish-launch: it, its servers or its trainers are killed, and it is started again at places."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from .job import BUILD, EPOCHS, HANGS_S, KEYS, ROOT, ROWS, Job
from .ledger import Failure, Ledger, require_rows

MARK = "TUNDISH_TORTURE"


class Launched(Job):
    nodes, replicas = 1, 2
    distribute = "{replicas: 2}"
    ENDINGS = 3  # before it may come to its end

    def run(self):
        if self.nodes > 1 and not (shutil.which("mpirun") and (BUILD / "server/tundish-mpi.so").exists()):
            self.troubles["left out: no MPI"] += 1
            return
        (self.folder / "tmp").mkdir()
        self.ledgers = [Ledger(f"rank {rank}") for rank in range(self.nodes * self.replicas)]
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
        for ledger in self.ledgers:
            ledger.require(KEYS)
        batches = [batch for ledger in self.ledgers for batch in ledger.batches.items()]
        require_rows("the ranks", batches, EPOCHS, ROWS)

    def file_of(self, what, rank):
        return self.folder / f"{what}.{rank}"

    def launch(self):
        out, place = shlex.quote(f"{self.folder}/out"), shlex.quote(f"{self.folder}/place")
        reader = f"{shlex.quote(self.reader)} --places --delay-ms 2"
        command = [sys.executable, "-B", str(ROOT / "scripts/tundish-launch"), str(self.file)]
        command += ["--tundish", str(BUILD / "server/tundish"), "--replicas", str(self.replicas)]
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
        """What the trainers have printed; the last line may be half a one."""
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
    nodes, replicas = 2, 1
    distribute = "{replicas: 1, auto_shard: DATA}"
