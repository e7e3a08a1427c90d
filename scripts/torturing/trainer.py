"""One trainer, and those that follow it when it is killed."""

import os
import subprocess
import time

from .ledger import Failure

CANNOT_START = 127  # the loader's exit status
PLACES_KEPT = 12


class Trainer:
    def __init__(self, job, ledger, name, group, delay_ms=1, batches=None, **environment):
        self.job, self.ledger, self.name, self.group = job, ledger, name, group
        self.delay_ms, self.environment = delay_ms, environment
        self.places = {}  # by what was given last: the token
        self.until = None  # the batch after which the next one closes, if it is known
        self.is_over = False
        self.batches_left = batches  # after which it closes; None: it goes on to the end
        self.is_late = job.random.random() < 0.5  # gives each batch back after it has the next
        self.last = None  # the batch printed last, of which has_place says whether it has its place
        self.before = None  # and the one before, which a late one may still hold
        self.begins = None  # where a server began that has given it nothing yet
        self.came_at = None  # where it was let in last
        self.stands = None  # where it goes on, if its group went back to its lowest step without it
        self.is_drained = True  # what the last server had published, before a new one gives it more
        self.shard = []  # rows of the one that is open
        self.ended = None  # the shard that the last batch was the end of
        self.ended_before = None  # the one that a batch was which a late one may still hold
        self.died_at = self.lost_at = None  # that one was killed; that a sibling was
        self.is_orphan = self.was_detached = False
        self.start()

    def start(self):
        command = [self.job.reader, "--survive", "--places", "--delay-ms", str(self.delay_ms)]
        if self.is_late:
            command.append("--late")
        if self.until is not None:
            command += ["--until", "{}:{}".format(*self.until)]
        elif self.batches_left is not None:
            command += ["--batches", str(self.batches_left)]
        if self.job.opens_at_places and self.places:
            command += ["--place", list(self.places.values())[-1]]
        self.is_attached = self.is_orphan = self.has_batch = False  # of this life
        self.has_place = self.is_drained = True
        self.before = self.ended_before = None
        self.shard.clear()
        self.process = subprocess.Popen(
            command, env=dict(self.job.environment, **self.environment), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        )  # fmt: skip
        self.rest = b""
        os.set_blocking(self.process.stdout.fileno(), False)

    def take(self):
        """Its output since the last time; at its end it is followed by another."""
        if not self.read():
            self.end()

    def read(self):
        """False: it has ended. A half line is of a batch it never gave back."""
        while True:
            try:
                data = os.read(self.process.stdout.fileno(), 1 << 20)
            except BlockingIOError:
                return True
            if not data:
                return False
            *lines, self.rest = (self.rest + data).split(b"\n")
            for line in lines:
                self.take_line(line.decode())

    def take_line(self, line):
        word, *rest = line.split(maxsplit=1)
        rest = rest[0] if rest else ""
        if word == "batch":
            epoch, step, *values = map(int, rest.split())
            self.take_batch((epoch, step), values)
        elif word == "place":
            self.has_place = True
            self.places.pop(self.last, None)
            self.places[self.last] = rest
            if len(self.places) > PLACES_KEPT:
                del self.places[next(iter(self.places))]
        elif word == "shard":
            self.take_shard(*rest.split())
        elif word == "first":
            self.is_attached = True
            self.came_at = tuple(map(int, rest.split()))
            self.job.tell(f"{self.name} is let in at {rest}")
        elif word == "end_of_stream":
            self.is_over = True
        elif word == "stopped" and self.is_late and self.has_batch and self.job.is_queue:
            self.ledger.allow([self.last])  # held to the end: the next to ask gets it
        elif word == "status":
            self.take_status(rest)

    def take_batch(self, key, values):
        if self.is_late and self.has_batch:
            self.before, self.ended_before = self.last, self.ended
        self.job.note_batch(self, key)
        self.last, self.has_place, self.ended = key, False, None
        self.has_batch = True
        if self.is_drained:
            self.begins = None
        self.stands = None
        self.job.progress = time.monotonic()
        if self.job.has_shards:
            self.shard += values
            self.job.rows += len(values)
        else:
            if self.job.is_queue and key in self.ledger.batches:
                self.hear_others()
            self.ledger.take(key, values)
        if self.died_at is not None:
            self.job.took["successor"].append(time.monotonic() - self.died_at)
            self.died_at = None
        if self.is_orphan:
            self.job.took["server"].append(time.monotonic() - self.job.served_at)
            self.is_orphan, self.job.is_told = False, True

    def hear_others(self):
        """One of them may have said already that it stops with this batch."""
        for trainer in self.job.trainers:
            if trainer is not self and not trainer.process.stdout.closed:
                trainer.read()

    def take_shard(self, number, end=""):
        if end:
            self.ended = self.last[0], int(number)
            self.ledger.take(self.ended, sorted(self.shard))
            self.shard.clear()

    def take_status(self, text):
        self.job.tell(f"{self.name}: {text}")
        if text.startswith("E_SERVER_GONE"):
            self.is_orphan = self.is_drained = True
        elif text.startswith("E_PEER_LOST"):
            if self.lost_at is not None:
                self.job.took["told"].append(time.monotonic() - self.lost_at)
                self.lost_at = None
        elif text.startswith("E_DETACHED") and self.job.detaches:
            self.was_detached = True
            self.places.clear()
            self.ledger.allow(list(self.ledger.batches))
        elif text.startswith("E_"):  # else no place is to be had: a queue's server is asked for it
            raise Failure(f"{self.name}: {text}")

    def end(self):
        """It has ended: another follows, once there is a server."""
        if self.job.server.poll() is not None:
            return
        status = self.process.wait()
        self.process.stdout.close()
        if status == CANNOT_START:
            raise Failure(f"{self.name}: {self.job.reader} cannot be started")
        if not self.is_over:
            self.leave(by_itself=status >= 0)
            self.job.follow(self, status)

    def kill(self):
        """And hear its last words, by which it is known what may come again."""
        self.process.kill()
        status = self.process.wait()
        if not self.process.stdout.closed:
            self.read()
        self.died_at, self.lost_at = time.monotonic(), None
        self.job.tell(f"{self.name} is killed after {self.last}")
        if self.job.has_shards:
            self.ledger.allow(key for key in (self.ended, self.ended_before) if key)
        elif self.last and not (self.has_place and self.job.opens_at_places):
            self.ledger.allow(key for key in (self.last, self.before) if key)
        self.leave(by_itself=status >= 0)

    def leave(self, by_itself):
        """Its place is empty. Without a place of its own the next begins where the server has it. One
        that left by itself may have done so a while ago."""
        self.is_attached = self.has_batch = False
        if by_itself:
            self.job.note_stands(self)
        if not self.job.opens_at_places:
            if self.begins is not None:
                self.ledger.allow_from(self.begins)
            self.job.allow_to_group(self.group)

    def is_here(self):
        """One that still reads what a dead server left may not have come to the next."""
        return self.is_attached and not (self.has_batch and self.begins is not None)

    def must_hear_of(self, victim):
        if self.is_attached and not self.is_over and self.died_at is None and self.lost_at is None:
            self.lost_at = victim.died_at

    def is_disturbed(self):
        """Something else goes on: what is being timed is not what it is to tell."""
        self.died_at = self.lost_at = None
