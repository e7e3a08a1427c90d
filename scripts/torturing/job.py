"""A server and its trainers, from the first step to the end of the stream, and what they suffer."""

import collections
import os
import random
import select
import signal
import struct
import subprocess
import time
from pathlib import Path

from . import source
from .admin import Admin
from .ledger import Failure, Ledger, require_rows
from .trainer import Trainer

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("BUILD", ROOT / "build")).resolve()
ROWS, BATCH, EPOCHS = 1600, 8, 2
STEPS = ROWS // BATCH
KEYS = [(epoch, step) for epoch in range(EPOCHS) for step in range(STEPS)]
HANGS_S = 300
# Nearer to the end all may have it in the memory of their server: it has four slots. The rest is for
# what they do while one of them, or it, is being killed.
NEAR_END = (EPOCHS - 1, STEPS - 30)
AHEAD = 8  # one trainer is at most this far ahead of another of its group: the slots, and a few


class Job:
    """Kinds of delivery are its subclasses."""

    distribute = "{}"
    sources = source.SOURCES
    has_state = False
    has_shards = is_queue = False
    detaches = False
    opens_at_places = True  # a trainer that follows another
    # How often which trouble, where a server can be killed at all.
    TROUBLES = {"trainer": 50, "group": 10, "server": 12, "both": 6, "all": 4, "term": 3, "stop": 15}

    def __init__(self, folder, seed):
        self.folder, self.random = folder, random.Random(seed)
        self.reader = str(BUILD / "tests/system/reader")
        self.file = folder / "pipeline.yaml"
        self.source = self.random.choice(self.sources)
        self.file.write_text(self.pipeline())
        self.environment = dict(
            os.environ, TUNDISH_SERVER=str(folder / "server"), TUNDISH_STREAM="train",
            TUNDISH_CACHE=str(folder / "cache"),
        )  # fmt: skip
        self.troubles, self.killed = collections.Counter(), collections.Counter()
        self.took = collections.defaultdict(list)  # seconds, by kind of recovery
        self.pids = []
        self.served_at, self.progress = 0.0, time.monotonic()
        self.rows = 0  # seen, but for those in ledgers
        self.ledgers, self.trainers = [], []
        self.story = []  # for those who have to find out what went wrong
        self.server = self.admin = None
        self.is_told = True  # the server, by a trainer that outlived the one before

    @classmethod
    def obstacle(cls):
        """Why this machine cannot run jobs of the kind, or None."""
        return None

    def pipeline(self):
        stages = [*self.rows_in_order(), *self.shuffle(), f"batch: {BATCH}"]
        lines = "".join(f"      - {stage}\n" for stage in stages)
        return (
            f"{self.head()}streams:\n  train:\n    dataset:\n{lines}    distribute: {self.distribute}\n"
            f"    deliver: {self.deliver()}\n"
        )

    def head(self):
        """The pipeline's lines above its streams."""
        return ""

    def shuffle(self):
        return ["shuffle: {buffer_size: 300}"]

    def rows_in_order(self):
        return source.stages(self.source, self.folder, ROWS)

    def deliver(self):
        draw = self.random.choice
        return (
            f"{{epochs: {EPOCHS}, slots: 4, rejoin: 600s, memory: {draw(['shm', 'memfd'])}, compression: "
            f"{draw(['auto', 'none', 'narrow', 'zstd'])}, checksums: {draw(['true', 'false'])}}}"
        )

    def tell(self, text):
        self.story.append(f"{time.strftime('%H:%M:%S', time.gmtime())}.{time.time_ns() // 1000000 % 1000:03} {text}")

    def add_trainer(self, ledger, name, **arguments):
        if ledger not in self.ledgers:
            self.ledgers.append(ledger)
        self.trainers.append(Trainer(self, ledger, name, **arguments))

    # --- the server ---------------------------------------------------------------------------

    def serve(self):
        command = [str(BUILD / "server/tundish"), "serve", str(self.file)]
        if self.has_state:
            (self.folder / "state").mkdir(exist_ok=True)
            command += ["--state", str(self.folder / "state")]
        read_end, write_end = os.pipe()
        with open(self.folder / "log", "a", encoding="utf-8") as log:
            self.server = subprocess.Popen(
                [*command, "--ready-fd", str(write_end)], env=self.environment,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=[write_end],
            )  # fmt: skip
        self.pids.append(self.server.pid)
        self.tell(f"server {self.server.pid} starts")
        os.close(write_end)
        if os.read(read_end, 16) != b"ready\n":
            raise Failure("the server did not start")
        os.close(read_end)

    def serve_again(self):
        for trainer in self.trainers:
            trainer.is_disturbed()
        self.allow_beyond_state()
        self.serve()
        self.served_at = time.monotonic()
        self.is_told = False

    def kill_server(self):
        self.server.kill()
        self.server.wait()
        self.killed["servers"] += 1

    def terminate_server(self):
        """It drains: trainers take what was published, are told, and it ends well."""
        self.server.send_signal(signal.SIGTERM)
        until = time.monotonic() + HANGS_S
        while self.server.poll() is None:
            self.take(0.02)
            if time.monotonic() > until:
                raise Failure(f"the server does not end within {HANGS_S} s of SIGTERM")
        if self.server.returncode != 0:
            raise Failure(f"the server ended with status {self.server.returncode} at SIGTERM")

    def kept(self):
        """The state on disk (--state): the next batch, and those after it that are done."""
        file = self.folder / "state" / "train.place"
        if not file.exists():
            return (0, 0), set()
        data = file.read_bytes()  # as sdk/shm/place.c lays it out
        epoch, step, count = struct.unpack_from("<16xQQ16xQ", data)
        bits = int.from_bytes(data[64 : 64 + (count + 7) // 8], "little")
        first = epoch * (STEPS + 1) + step  # an epoch's end has a bit, too
        done = {divmod(first + i, STEPS + 1) for i in range(count) if bits >> i & 1}
        return (epoch, step), done

    # --- trouble ------------------------------------------------------------------------------

    def disturb(self):
        """One of the kinds of trouble."""
        self.take(0)
        running = [trainer for trainer in self.trainers if not trainer.is_over]
        if not running:
            return
        kind = self.random.choices(list(self.TROUBLES), self.TROUBLES.values())[0]
        victim = self.random.choice(running)
        self.tell(kind)
        group = [trainer for trainer in running if trainer.group == victim.group]
        victims = {"trainer": [victim], "both": [victim], "group": group, "all": running}.get(kind, [])
        if kind == "both" and self.opens_at_places and not victim.places:
            return  # a new process without a place is refused where nobody is left who knows what it had
        kills_server = kind in ("both", "server", "all", "term")
        if (victims or kills_server) and self.would_wait(victims, kills_server):
            self.avoid_waiting()
            return
        if kind == "stop":
            self.stop(group)
        elif kind in ("trainer", "group"):
            self.kill_trainers(victims)
        elif kind == "term":
            self.terminate_server()
            self.serve_again()
        else:
            if victims:
                self.kill_trainers(victims)
            self.kill_server()
            if kind == "all" and self.opens_at_places:
                self.go_back(running)
            self.serve_again()
        self.troubles[kind] += 1
        if self.admin is not None:
            self.admin.look()

    def would_wait(self, victims, kills_server):
        """Those who outlive a server near the end may find that in its memory, and not come to the next
        one. Who begins again knows of nobody, and the new server would wait for them all."""
        begins_again = any(trainer in victims or not trainer.has_batch
                           for trainer in self.trainers if not trainer.is_over)  # fmt: skip
        must_tell = kills_server or not self.is_told
        return must_tell and begins_again and all(
            trainer.is_over or (trainer.last or (0, 0)) >= NEAR_END for trainer in self.trainers)

    def avoid_waiting(self):
        """They are spared."""

    def stop(self, group):
        """A trainer, its whole group or the server stands still, for a moment or for long."""
        trainers = [trainer.process for trainer in self.random.choice([group, group[:1]])]
        processes = [p for p in self.random.choice([trainers, [self.server]]) if p.poll() is None]
        for process in processes:
            process.send_signal(signal.SIGSTOP)
        time.sleep(self.random.choice([0, 0.02, 0.02, 0.05, 0.05, self.stops_s]))
        for process in processes:
            process.send_signal(signal.SIGCONT)
        for trainer in self.trainers:
            trainer.is_disturbed()

    stops_s = 0.3

    def kill_trainers(self, victims):
        for victim in victims:
            self.killed["trainers"] += victim.process.poll() is None
            victim.kill()
        group = [trainer for trainer in self.trainers if trainer.group == victims[0].group]
        for trainer in group:
            if trainer not in victims:
                trainer.must_hear_of(victims[0])

    def allow_to_group(self, name):
        """One of which nobody is left goes on, without places, at its lowest step. A trainer that
        read the rest in the memory of the server before is known here only by where it began."""
        group = [t for t in self.trainers if t.group == name and (not t.is_over or t.begins is not None)]
        if group and not self.has_shards and not any(trainer.is_here() for trainer in group):
            lowest = min(trainer.begins or trainer.stands or trainer.last or (0, 0) for trainer in group)
            for trainer in group:
                trainer.ledger.allow_from(lowest)
                trainer.stands = lowest

    def note_stands(self, left):
        """A sibling that was let in meanwhile, with nobody there, took it back to its own step."""
        if left.last is not None:
            near = [t.came_at for t in self.trainers if t.group == left.group and t is not left and t.came_at
                    and t.came_at <= left.last and steps_of(left.last) - steps_of(t.came_at) <= AHEAD]  # fmt: skip
            left.stands = min([left.last, *near])

    def allow_beyond_state(self):
        """The server that knew what was given back is dead: those that had nothing yet, and come
        without a place, begin where --state says."""
        if self.has_state:
            first, _ = self.kept()
            for trainer in self.trainers:
                is_drained = trainer.process.poll() is not None
                if is_drained and not trainer.process.stdout.closed:
                    trainer.read()  # what it had of servers before
                trainer.begins, trainer.is_drained = first, is_drained
                if not trainer.has_batch:
                    trainer.ledger.allow_from(first)

    def go_back(self, trainers):
        """All open at places of one step that they have passed already."""
        if not all(trainer.places for trainer in trainers):
            for trainer in self.trainers:  # no checkpoint is complete: the job starts from the beginning
                trainer.places.clear()
                trainer.ledger.begin_anew()
                trainer.is_over, trainer.last = False, None
            return
        last = min(max(trainer.places) for trainer in trainers)
        common = [key for key in trainers[0].places if key <= last
                  and all(key in trainer.places for trainer in trainers)]  # fmt: skip
        if not common:
            return
        key = self.random.choice(common[-4:])
        for trainer in trainers:
            trainer.places = {k: token for k, token in trainer.places.items() if k <= key}
            trainer.ledger.allow(k for k in trainer.ledger.batches if k > key)
        self.troubles["older places"] += 1

    # --- what trainers tell -------------------------------------------------------------------

    def follow(self, trainer, status):
        """Its process has ended with this status; another follows."""
        trainer.start()

    def note_batch(self, trainer, key):
        """It was given this one, after trainer.last."""

    # --- a run --------------------------------------------------------------------------------

    def take(self, timeout_s):
        waiting = {t.process.stdout: t for t in self.trainers if not t.process.stdout.closed}
        if not waiting:
            time.sleep(timeout_s)
        for pipe in select.select(list(waiting), [], [], timeout_s)[0]:
            waiting[pipe].take()

    def is_over(self):
        return all(trainer.is_over for trainer in self.trainers)

    def run(self):
        self.serve()
        if self.random.random() < 0.4:
            self.admin = Admin(self, BUILD / "admin/tundish-admin")
        self.start_trainers()
        while not self.is_over():
            if self.random.random() < 0.3:
                self.disturb()
            until = time.monotonic() + self.random.uniform(0, 0.08)
            while time.monotonic() < until and not self.is_over():
                self.take(0.01)
            self.require_progress()
        self.check()

    def require_progress(self):
        if time.monotonic() - self.progress > HANGS_S:
            done = subprocess.run([BUILD / "server/tundish", "status"], env=self.environment, timeout=60,
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True)  # fmt: skip
            raise Failure(f"nothing came for {HANGS_S} s: {done.stdout}{done.stderr}")

    def start_trainers(self):
        raise NotImplementedError

    def check(self):
        for ledger in self.ledgers:
            ledger.require(KEYS)
        groups = collections.defaultdict(list)
        for trainer in self.trainers:
            groups[trainer.group] += trainer.ledger.batches.items()
        for group, batches in groups.items():
            require_rows(group, batches, EPOCHS, ROWS)

    def close(self):
        processes = [trainer.process for trainer in self.trainers]
        processes += [self.server] if self.server is not None else []
        for process in processes:
            if process.poll() is None:
                process.kill()
            process.wait()
        if self.admin is not None:
            self.admin.close()


def steps_of(key):
    return key[0] * STEPS + key[1]
