"""Trainers that are restarted, alone or as a group."""

import contextlib
import math
import signal
import socket
import time
from dataclasses import dataclass, field

from .processes import (
    LaunchError, describe_exit, failures, is_running, kill_leftovers, say, send, signal_when_readable,
)

# The delay before the first restart, and the longest before a later one.
RESTART_DELAY_S, RESTART_DELAY_MAX_S = 0.25, 8


@dataclass
class TrainerGroup:
    """Trainers that are restarted together: a group, or a single trainer."""

    launch: object  # (replica, restarts) -> process
    replicas: range
    grace_s: float
    restarts_left: int = 0
    restarts: int = 0
    processes: list = field(default_factory=list)
    kill_at: float | None = None  # one has failed: the others are ending
    start_at: float | None = None  # all have ended: the next ones start

    def start(self):
        self.kill_at = self.start_at = None
        self.processes = []
        for replica in self.replicas:
            self.processes.append(self.launch(replica, self.restarts))

    def is_restarting(self):
        return self.kill_at is not None or self.start_at is not None

    def is_busy(self):
        return self.is_restarting() or any(map(is_running, self.processes))

    def advance(self):
        """Take the next step from a failure to a restart, if it is due."""
        if not self.is_restarting() and failures(self.processes) and self.restarts_left > 0:
            self.give_up()
        if self.kill_at is not None and self.end_others():
            self.kill_at = None
            self.start_later()
        if self.start_at is not None and time.monotonic() >= self.start_at:
            self.start()

    def give_up(self):
        self.restarts_left -= 1
        self.restarts += 1
        self.kill_at = time.monotonic() + self.grace_s
        describe_failure = self.describe_failure()
        send(self.processes, signal.SIGTERM)
        say(f"{describe_failure} is started again in {restart_delay(self.restarts):g} s, for "
            f"{self.restarts_left} more failure{'s'[:self.restarts_left != 1]} at most")

    def describe_failure(self):
        replica, code = next((r, p.returncode) for r, p in zip(self.replicas, self.processes)
                             if p.returncode)
        again = "the group" if len(self.replicas) > 1 else "it"
        return f"replica {replica} {describe_exit(code)}: {again}"

    def start_later(self):
        self.start_at = time.monotonic() + restart_delay(self.restarts)

    def end_others(self):
        """Returns whether all their processes have ended."""
        if any(map(is_running, self.processes)):
            if time.monotonic() >= self.kill_at:
                send(self.processes, signal.SIGKILL)
                self.kill_at = math.inf  # nothing is left to do but wait
            return False
        kill_leftovers({process.pid for process in self.processes})
        return True

    def next_step(self):
        """Returns the time of the next step that needs no signal."""
        return min((at for at in (self.kill_at, self.start_at) if at is not None), default=math.inf)


@dataclass
class SpreadTrainerGroup(TrainerGroup):
    """This node's part of a group of several nodes. A failure is one of all their launchers, which end
    their trainers, and start them once all are gone and the servers stand where all begin. Nobody
    leaves before all have ended well: until then a failure elsewhere may start these again."""

    barrier: object = None

    def advance(self):
        self.barrier.listen()
        if self.barrier.failed > self.restarts and self.restarts_left > 0:
            self.give_up()
        super().advance()
        if self.start_at == math.inf and self.barrier.begun == self.restarts:
            super().start_later()
        if not self.is_restarting() and all(process.returncode == 0 for process in self.processes):
            self.barrier.report_done(self.restarts)

    def is_busy(self):
        has_said = self.barrier.reported_done == self.restarts  # else the others wait for it
        return super().is_busy() or not has_said or not self.barrier.is_finished(self.restarts)

    def give_up(self):
        is_told = self.barrier.failed > self.restarts
        super().give_up()
        if not is_told:
            self.barrier.send("failed", self.restarts)

    def describe_failure(self):
        if failures(self.processes):
            return super().describe_failure()
        return "another node has said that a trainer failed: the group"

    def start_later(self):
        self.start_at = math.inf
        self.barrier.send("ended", self.restarts)


class RestartBarrier:
    """Lets the launchers of several nodes restart a group together. Their messages go through their
    servers (--crew-fd)."""

    def __init__(self, nodes):
        self.nodes = nodes
        self.ours, self.servers = socket.socketpair()
        signal_when_readable(self.ours)
        self.heard = b""
        self.failed = self.begun = 0  # how often, as others and the server say
        self.done = {}  # by the number of failures: how many others have ended well after these
        self.reported_done = -1
        self.is_closed = False

    def send(self, word, number):
        with contextlib.suppress(OSError):  # the server has ended, which others see to
            self.ours.sendall(f"{word} {number}\n".encode())

    def listen(self):
        while not self.is_closed:
            try:
                piece = self.ours.recv(1 << 12)
            except BlockingIOError:
                break
            except OSError:
                piece = b""
            self.is_closed = not piece
            self.heard += piece
        *lines, self.heard = self.heard.split(b"\n")
        for line in lines:
            self.take(*line.decode().split(" ", 1))

    def take(self, word, rest):
        if word == "never":
            raise LaunchError(f"the trainers are not started again: {rest}")
        if word == "failed":
            self.failed = max(self.failed, int(rest))
        elif word == "begin":
            self.begun = int(rest)
        elif word == "done":
            self.done[int(rest)] = self.done.get(int(rest), 0) + 1

    def report_done(self, failures_before):
        if self.reported_done != failures_before:
            self.reported_done = failures_before
            self.send("done", failures_before)

    def is_finished(self, failures_before):
        """No launcher is left that could restart this node's trainers."""
        return self.is_closed or self.done.get(failures_before, 0) >= self.nodes - 1


def trainers_of(groups):
    return [process for group in groups for process in group.processes]


def restart_delay(restarts):
    return min(RESTART_DELAY_MAX_S, RESTART_DELAY_S * 2 ** min(restarts - 1, 30))
