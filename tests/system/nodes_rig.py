"""Servers of several nodes: MPI ranks on one machine, each with its own socket and trainers."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

from rig import DEADLINE_S, READER, TUNDISH, Rig, batches

MPIRUN = ["mpirun", "--oversubscribe", "--enable-recovery", "--mca", "btl_base_warn_component_unused", "0",
          # A sandbox may forbid reading other processes' memory, of which Open MPI hears too late.
          "--mca", "btl_vader_single_copy_mechanism", "none"]
if os.geteuid() == 0:
    MPIRUN.append("--allow-run-as-root")


def why_not():
    """A reason to skip, or None."""
    if not (Path(TUNDISH).parent / "tundish-mpi.so").exists():
        return "this build has no MPI"
    if shutil.which("mpirun") is None:
        return "there is no mpirun"
    return None


def main(obstacle=lambda: None):
    """Run the tests, or say why not in the way that Meson understands."""
    reason = why_not() or obstacle()
    if reason:
        print(reason)
        sys.exit(77)
    unittest.main()


class NodesRig(Rig):
    def setUp(self):
        super().setUp()
        self.ranks = {}

    def end_all(self):
        """mpirun ends its ranks; those that stand still are ended here. Their shells, which write
        into the test's folder, are waited for."""
        for pid in self.ranks.values():
            end(pid)
        super().end_all()
        for shell in self.path.glob("shell.*"):
            deadline = time.monotonic() + DEADLINE_S
            while Path(f"/proc/{int(shell.read_text())}").exists() and time.monotonic() < deadline:
                time.sleep(0.02)

    def serve_nodes(self, files, *options, mpirun=(), apart=False):
        """A server for each pipeline file, as a rank of one job; waits until all are ready. apart:
        each with a cache folder of its own."""
        parts = []
        for rank, file in enumerate(files):
            command = [TUNDISH, "serve", file, "--socket", self.node_socket(rank), *options]
            if apart:
                command += ["--cache", f"{self.path}/cache.{rank}"]
            # The server's process itself says its number: the shell could be later than its first word.
            server = f"echo $$ >{self.path}/pid.{rank}; exec {shlex.join(command)} 2>{self.node_log(rank)}"
            script = f"echo $$ >{self.path}/shell.{rank}; sh -c {shlex.quote(server)} & " \
                f"wait $!; echo $? >{self.path}/status.{rank}"
            parts += [":"] * bool(parts) + ["-n", "1", "sh", "-c", script]
        job = self.start([*MPIRUN, *mpirun, *parts])
        self.wait_for(lambda: all(self.is_ready(rank) for rank in range(len(files)))
                      or job.poll() is not None)
        for rank in range(len(files)):
            self.ranks[rank] = int((self.path / f"pid.{rank}").read_text())
        return job

    def node_socket(self, rank):
        return str(self.path / f"server.{rank}")

    def node_log(self, rank):
        return self.path / f"log.{rank}"

    def log_of(self, rank):
        return self.node_log(rank).read_text() if self.node_log(rank).exists() else ""

    def is_ready(self, rank):
        return " ready: " in self.log_of(rank)

    def wait_for(self, condition):
        deadline = time.monotonic() + DEADLINE_S
        while not condition():
            self.assertLess(time.monotonic(), deadline, self.all_logs())
            time.sleep(0.02)

    def all_logs(self):
        return "".join(path.read_text() for path in sorted(self.path.glob("log.*")))

    def read_node(self, rank, *options, replica=0):
        return self.start([READER, *options], TUNDISH_SERVER=self.node_socket(rank),
                          TUNDISH_REPLICA=str(replica))

    def read_all(self, nodes, replicas, *options):
        """What every trainer of the job prints: {(rank, replica): lines}."""
        trainers = {
            (rank, replica): self.read_node(rank, *options, replica=replica)
            for rank in range(nodes) for replica in range(replicas)
        }
        return {key: self.lines(trainer) for key, trainer in trainers.items()}

    def peek_workers(self, file, count, *options):
        return {rank: self.peek(file, "--num-workers", str(count), "--worker", str(rank), *options)
                for rank in range(count)}

    def stop_nodes(self, job):
        """All servers drain; what they ended with."""
        for pid in self.ranks.values():
            os.kill(pid, signal.SIGTERM)
        return self.statuses(job)

    def statuses(self, job):
        """What the servers ended with. (mpirun, told to put up with failures, has no opinion.)"""
        job.wait(timeout=DEADLINE_S)
        return [int((self.path / f"status.{rank}").read_text()) for rank in sorted(self.ranks)]

    def link_figures(self, rank):
        """What the server said of its messages when it ended."""
        line = [line for line in self.log_of(rank).splitlines() if "messages sent" in line][-1]
        names = ("sent", "beats", "bytes", "received", "posts", "waits")
        numbers = re.search(
            r"(\d+) messages sent \((\d+) beats, (\d+) bytes\), (\d+) received; (\d+) posts; "
            r"waited (\d+) times", line)
        return dict(zip(names, map(int, numbers.groups())))


def end(pid):
    for number in (signal.SIGKILL, signal.SIGCONT):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return


def rows(lines_of_all):
    """Every row that anybody was given, sorted."""
    return sorted(v for lines in lines_of_all.values() for _, _, vs in batches(lines) for v in vs)
