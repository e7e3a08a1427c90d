"""Kinds of delivery, each with what it promises."""

import functools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from .iterable import Iterable
from .job import BUILD, EPOCHS, KEYS, ROWS, STEPS, Job, steps_of
from .launched import Launched, LaunchedApart, LaunchedFiles, LaunchedNodes, LaunchedStore
from .ledger import Failure, Ledger, require_rows


class Lanes(Job):
    """Two groups of two replicas."""

    distribute = "{replicas: 2, groups: 2}"
    slow_ms = 1  # the second group's steps

    def start_trainers(self):
        for group in "ab":
            for replica in range(2):
                name = f"group {group}, replica {replica}"
                self.add_trainer(
                    Ledger(name), name, group=group, delay_ms=self.slow_ms if group == "b" else 1,
                    TUNDISH_GROUP=group, TUNDISH_REPLICA=str(replica),
                )  # fmt: skip


class SlowGroup(Lanes):
    """One group takes its time, and stands still for longer than a server waits for survivors."""

    slow_ms = 8
    stops_s = 1.2


class Detached(Lanes):
    """The group that is too slow is cut off, and comes again where the server is by then."""

    distribute = "{groups: 2}"
    detaches = True
    slow_ms = 10
    TROUBLES = {"trainer": 60, "stop": 40}

    def deliver(self):
        return super().deliver().replace("{", "{slow_group: detach, ", 1)

    def start_trainers(self):
        for group in "ab":
            name = f"group {group}"
            self.add_trainer(Ledger(name), name, group=group, TUNDISH_GROUP=group,
                             delay_ms=self.slow_ms if group == "b" else 1)  # fmt: skip

    def check(self):
        fast, slow = self.trainers
        fast.ledger.require(KEYS)
        require_rows(fast.name, fast.ledger.batches.items(), EPOCHS, ROWS)
        if not slow.was_detached:
            slow.ledger.require(KEYS)
        for key, values in slow.ledger.batches.items():
            if fast.ledger.batches[key] != values:
                raise Failure(f"{slow.name}: {key} has other rows than {fast.name} had")


class KeptPlaces(Lanes):
    """The server keeps the places; trainers have none."""

    distribute = "{replicas: 2}"
    has_state = True
    opens_at_places = False

    def start_trainers(self):
        for replica in range(2):
            name = f"replica {replica}"
            self.add_trainer(Ledger(name), name, group="default", TUNDISH_REPLICA=str(replica))

    def avoid_waiting(self):
        """All are killed, and those that had finished start again, too: the place on disk may be from
        before their end. None outlives the server, so there is nothing to tell the next one."""
        self.kill_trainers(self.trainers)
        self.kill_server()
        if self.is_over():
            return
        finished = [trainer for trainer in self.trainers if trainer.process.stdout.closed]
        for trainer in self.trainers:
            trainer.is_over, trainer.last = False, None
        self.serve_again()
        self.is_told = True
        for trainer in finished:
            trainer.start()
        self.troubles["whole job"] += 1


class Queue(Job):
    """Each batch to one of three readers; the server keeps what was visited."""

    distribute = "{delivery: queue}"
    has_state = is_queue = True
    opens_at_places = False

    def start_trainers(self):
        ledger = Ledger("the queue")
        for reader in range(3):
            self.add_trainer(ledger, f"reader {reader}", group="default", TUNDISH_REPLICA=str(reader))

    def would_wait(self, victims, kills_server):
        return False

    def allow_to_group(self, group):
        """Each gives back for itself."""

    def allow_beyond_state(self):
        """Readers that it let in take what the dead server had published, of which it kept nothing."""
        while any(t.is_attached and not (t.is_orphan or t.is_over) for t in self.trainers
                  if t.process.poll() is None and not t.process.stdout.closed):  # fmt: skip
            self.take(0.01)
            self.require_progress()
        for trainer in self.trainers:
            if not trainer.process.stdout.closed:
                trainer.read()
        first, done = self.kept()
        self.ledgers[0].allow(k for k in self.ledgers[0].batches if k >= first and k not in done)

    def check(self):
        self.ledgers[0].require(KEYS)
        require_rows("the queue", self.ledgers[0].batches.items(), EPOCHS, ROWS)


class Broadcast(Job):
    distribute = "{delivery: broadcast, groups: 3}"

    def start_trainers(self):
        for group in "abc":
            self.add_trainer(Ledger(f"group {group}"), f"group {group}", group=group, TUNDISH_GROUP=group)


class Shards(Job):
    """An evaluation: every shard is finished, by one or another."""

    COUNT = 12
    distribute = f"{{auto_shard: DATA, evaluation_shards: {COUNT}}}"
    has_shards = True
    stops_s = 1.5  # what lies ready for the reader goes to others
    opens_at_places = False
    TROUBLES = {"trainer": 70, "stop": 30}

    def would_wait(self, victims, kills_server):
        return False

    def start_trainers(self):
        ledger = Ledger("the shards")
        for reader in range(3):
            self.add_trainer(ledger, f"reader {reader}", group="default", TUNDISH_REPLICA=str(reader))

    def check(self):
        self.ledgers[0].require((epoch, shard) for epoch in range(EPOCHS) for shard in range(self.COUNT))
        require_rows("the shards", self.ledgers[0].batches.items(), EPOCHS, ROWS)


class Sessions(Job):
    """Workers that read the whole stream, each at its own pace."""

    distribute = "{from_function: true}"

    def start_trainers(self):
        for name in ("one", "two", "three"):
            self.add_trainer(Ledger(f"session {name}"), f"session {name}", group=name,
                             TUNDISH_SESSION=name)  # fmt: skip


class Fresh(Job):
    """Readers leave in the midst of epochs, one group after the other: each begins an epoch that none
    had begun. One that is killed is followed where it stood."""

    EPOCHS = 8
    opens_at_places = False
    TROUBLES = {"trainer": 60, "stop": 40}

    def __init__(self, folder, seed):
        self.replicas = seed // 7 % 2 + 1
        self.distribute = f"{{replicas: {self.replicas}}}"
        super().__init__(folder, seed)
        self.is_fresh = set()  # trainers of which nothing was heard yet
        self.begins_with = 0  # the epoch
        self.leaves_at = {}  # the last batch of each, counted through

    def deliver(self):
        return super().deliver().replace(f"epochs: {EPOCHS}", f"epochs: {self.EPOCHS}")

    def would_wait(self, victims, kills_server):
        return False

    def draw_batches(self):
        return self.random.randrange(1, STEPS * 3 // 2)

    def kill_trainers(self, victims):
        """None that has its last batch: nobody could say whether it closed before it was killed."""
        victims = [victim for victim in victims if not self.has_all(victim)]
        if victims:
            super().kill_trainers(victims)

    def has_all(self, trainer):
        """It stands still afterwards, unless it has, or has ended."""
        if trainer.process.poll() is not None:
            return True
        trainer.process.send_signal(signal.SIGSTOP)
        state = Path(f"/proc/{trainer.process.pid}/stat")
        while state.read_text().rpartition(")")[2].split()[0] not in "TZX":
            time.sleep(0.001)
        trainer.read()
        has_all = trainer.last is not None and self.leaves_at.get(trainer) == steps_of(trainer.last)
        if has_all:
            trainer.process.send_signal(signal.SIGCONT)
        return has_all

    def start_trainers(self):
        count = self.draw_batches()
        for replica in range(self.replicas):
            name = f"replica {replica}"
            self.add_trainer(Ledger(name), name, group="default", batches=count,
                             TUNDISH_REPLICA=str(replica))  # fmt: skip

    def follow(self, trainer, status):
        if status < 0:
            if trainer in self.leaves_at:
                trainer.until = divmod(self.leaves_at[trainer], STEPS)
            trainer.start()
        elif all(other.is_over or other.process.stdout.closed for other in self.trainers):
            self.begins_with = max(other.last[0] for other in self.trainers) + 1
            count = self.draw_batches()
            self.leaves_at.clear()
            for other in self.trainers:
                if not other.is_over:
                    other.batches_left, other.until = count, None
                    other.start()
                    self.is_fresh.add(other)
            self.troubles["fresh"] += 1

    def note_batch(self, trainer, key):
        if trainer in self.is_fresh and key != (self.begins_with, 0):
            raise Failure(f"{trainer.name}: a fresh reader begins with {key}, not epoch {self.begins_with}")
        self.is_fresh.discard(trainer)
        self.leaves_at.setdefault(trainer, key[0] * STEPS + key[1] + trainer.batches_left - 1)

    def check(self):
        """Each epoch's first steps, however many, and no row twice."""
        for trainer in self.trainers:
            for epoch in range(self.EPOCHS):
                steps = sorted(s for e, s in trainer.ledger.batches if e == epoch)
                if steps != list(range(len(steps))) or not steps:
                    raise Failure(f"{trainer.name}, epoch {epoch}: has steps {steps}")
        seen = [(epoch, value) for ledger in self.ledgers
                for (epoch, _), values in ledger.batches.items() for value in values]  # fmt: skip
        if len(set(seen)) != len(seen):
            raise Failure(f"{len(seen)} rows, and {len(set(seen))} different ones")


class Python(Lanes):
    """Rows pass through a function in Python, whose interpreters are killed, too."""

    INTERPRETER = "/usr/bin/python3"  # which has Debian's numpy
    CALM_S = 1  # a row at which two interpreters end is a bad one

    def __init__(self, folder, seed):
        (folder / "own.py").write_text("def same(row):\n    return {'value': row['value']}\n")
        self.calm_until = 0.0
        super().__init__(folder, seed)
        package = str(BUILD / "sdk" / "python")
        self.environment |= {"TUNDISH_PYTHON": self.INTERPRETER, "TUNDISH_PYTHONPATH": package}

    @classmethod
    @functools.cache
    def obstacle(cls):
        try:
            done = subprocess.run([cls.INTERPRETER, "-c", "import numpy"], capture_output=True)
        except FileNotFoundError:
            return f"there is no {cls.INTERPRETER}"
        return f"{cls.INTERPRETER} has no numpy" if done.returncode else None

    def rows_in_order(self):
        warm = self.random.choice(("start", "fork"))
        return [*super().rows_in_order(), f"python: {{call: 'own:same', workers: 2, warm: {warm}}}"]

    def disturb(self):
        if self.random.random() < 0.5:
            self.kill_interpreter()
        else:
            super().disturb()

    def kill_interpreter(self):
        """One of the server's children."""
        tasks = Path(f"/proc/{self.server.pid}/task").glob("*/children")
        running = [int(pid) for children in tasks for pid in children.read_text().split()]
        if running and time.monotonic() >= self.calm_until:
            self.tell("interpreter")
            os.kill(self.random.choice(running), signal.SIGKILL)
            self.calm_until = time.monotonic() + self.CALM_S
            self.killed["interpreters"] += 1


class Programs(Lanes):
    """Rows of a program in several processes, which with `seek` begin near the place that is resumed."""

    PROGRAM = """
from tundish.rows import RowWriter

with RowWriter({{"value": "int64"}}) as rows:
    for number in range(rows.first, {rows}, rows.step):
        rows.write(value=number)
"""
    sources = ["program"]

    def __init__(self, folder, seed):
        (folder / "rows.py").write_text(self.PROGRAM.format(rows=ROWS))
        super().__init__(folder, seed)
        self.environment["PYTHONPATH"] = str(BUILD / "sdk" / "python")

    def rows_in_order(self):
        several = f"processes: {self.random.choice((2, 3, 5))}, seek: {self.random.choice(('true', 'false'))}"
        command = f'["{sys.executable}", "{self.folder}/rows.py"]'
        return [f"program: {{command: {command}, spec: {{value: {{dtype: int64}}}}, {several}}}"]

    def shuffle(self):
        """Without one a program that seeks makes no row before the place."""
        return self.random.choice((super().shuffle(), []))


ALL = [Lanes, SlowGroup, Queue, Launched, Broadcast, Shards, Sessions, KeptPlaces, Detached,
       LaunchedNodes, LaunchedFiles, LaunchedApart, LaunchedStore, Fresh, Python, Programs, Iterable]  # fmt: skip
