"""Batches of an IterableDataset, by tundish.torch.DataLoader."""

import collections
import functools
import math
import os
import select
import signal
import subprocess
import sys
import time

from .job import BATCH, BUILD, EPOCHS, HANGS_S, ROWS, Job
from .ledger import Failure, Ledger, require_rows

DATA = """
import time
import torch
from torch.utils.data import IterableDataset, get_worker_info


class Numbers(IterableDataset):
    def __init__(self, rows, values):
        self.rows, self.values = rows, values

    def __iter__(self):
        info = get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        for number in range(first, self.rows, step):
            time.sleep(0.001)
            yield torch.full((self.values,), number)
"""

KILLS = 8  # in a job: after each of them torch is imported again

# A fault of the server or of a worker is an error of the loop, which begins another at the saved place.
TRAINER = """
import json, os, sys
import numbers_of_rows, tundish
from tundish.torch import DataLoader

rows, values, batch, workers, epochs, path = *map(int, sys.argv[1:6]), sys.argv[6]
while True:
    loader = DataLoader(numbers_of_rows.Numbers(rows, values), batch, num_workers=workers)
    if os.path.exists(path):
        with open(path) as file:
            loader.load_state_dict(json.load(file))
    try:
        while (epoch := loader.state_dict()["epoch"]) < epochs:
            for made in loader:
                if not (made == made[:, :1]).all():
                    sys.exit(f"a batch is torn: {made}")
                state = loader.state_dict()
                print(epoch, sum(state["taken"]) - 1, *made[:, 0].tolist(), flush=True)
                with open(path + ".new", "w") as file:
                    json.dump(state, file)
                os.rename(path + ".new", path)
                print("saved", flush=True)
        break
    except tundish.Error as error:
        print("error", type(error).__name__, str(error).replace("\\n", " "), flush=True)
    finally:
        loader.close()
print("over", flush=True)
"""


class Iterable(Job):
    """A trainer that saves its place after each batch. It is killed, and so are its server, the interpreter that
    has forked the workers, and they."""

    sources = ["iterable"]
    TROUBLES = {"trainer": 30, "server": 20, "interpreter": 15, "worker": 35}

    def __init__(self, folder, seed):
        super().__init__(folder, seed)
        (folder / "numbers_of_rows.py").write_text(DATA)
        self.workers = self.random.choice((0, 1, 2, 3))
        self.values = self.random.choice((2, 5000))  # a small batch goes through the server, a large one beside it
        self.environment |= {
            "PYTHONPATH": os.pathsep.join((str(BUILD / "sdk" / "python"), str(folder))), "TUNDISH_BUILD": str(BUILD),
        }  # fmt: skip
        self.ledger = Ledger("the trainer")
        self.ledgers.append(self.ledger)
        self.trainer = None
        self.seen = {}  # processes, and when they began
        self.unsaved = None

    @classmethod
    @functools.cache
    def obstacle(cls):
        done = subprocess.run([sys.executable, "-c", "import numpy, torch"], capture_output=True)
        return f"{sys.executable} has no torch" if done.returncode else None

    def pipeline(self):
        return ""

    def start(self):
        words = [ROWS, self.values, BATCH, self.workers, EPOCHS, self.folder / "place"]
        with open(self.folder / "log", "a", encoding="utf-8") as log:
            self.trainer = subprocess.Popen([sys.executable, "-c", TRAINER, *map(str, words)], env=self.environment,
                                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log)  # fmt: skip
        self.pids.append(self.trainer.pid)
        os.set_blocking(self.trainer.stdout.fileno(), False)
        self.rest = b""
        self.tell(f"trainer {self.trainer.pid} starts")

    def run(self):
        self.start()
        calm_until = math.inf  # a trainer that begins again is to come further
        while self.is_running():
            if calm_until == math.inf and self.has_batch:
                calm_until = time.monotonic() + self.random.choice((0, 0, 0.1, 0.5))
            if time.monotonic() >= calm_until and self.killed.total() < KILLS:
                self.disturb()
                calm_until = math.inf
            self.require_progress()
        self.check()

    has_batch = False  # after the last fault

    def is_running(self):
        """Take its output."""
        if not select.select([self.trainer.stdout], [], [], 0.05)[0]:
            return True
        data = self.trainer.stdout.read()
        if data == b"":
            raise Failure(f"the trainer ended with status {self.trainer.wait()}")
        *lines, self.rest = (self.rest + data).split(b"\n")
        return all([self.note(line.decode()) for line in lines])

    def note(self, line):
        words = line.split()
        if words[0] == "saved":
            self.unsaved = None
        elif words[0] == "error":
            self.tell(line)
        elif words[0] != "over":
            epoch, step, *values = map(int, words)
            self.ledger.take((epoch, step), values)
            self.unsaved, self.has_batch, self.progress = (epoch, step), True, time.monotonic()
        return words[0] != "over"

    def disturb(self):
        victims = self.processes()
        kind = self.random.choices(list(self.TROUBLES), self.TROUBLES.values())[0]
        if not victims[kind] or self.trainer.poll() is not None:
            return
        victim = self.random.choice(victims[kind])
        self.tell(f"{kind} {victim} is killed")
        os.kill(victim, signal.SIGKILL)
        self.killed[f"{kind}s"] += 1
        self.troubles[kind] += 1
        self.has_batch = False
        if kind == "trainer":
            self.trainer.wait()
            self.take_rest()
            self.start()

    def take_rest(self):
        """Its output before it was killed. A batch whose place it had not saved comes again."""
        for line in (self.rest + self.trainer.stdout.read()).split(b"\n")[:-1]:
            self.note(line.decode())
        if self.unsaved is not None:
            self.ledger.allow([self.unsaved])
        self.has_batch = False

    def processes(self):
        """The trainer and its processes, by their work."""
        children, names = collections.defaultdict(list), {}
        for pid, parent, name, began in running():
            children[parent].append(pid)
            names[pid] = name, began
        found = {"trainer": [self.trainer.pid], "server": [], "interpreter": [], "worker": []}
        for pid in children[self.trainer.pid]:
            kind = "server" if names[pid][0] == "tundish" else "interpreter"
            found[kind].append(pid)
            if kind == "interpreter":
                found["worker"] += children[pid]
        for pids in found.values():
            self.seen.update((pid, names[pid][1]) for pid in pids if pid in names)
        self.pids += found["server"]
        return found

    def check(self):
        if self.trainer.wait() != 0:
            raise Failure(f"the trainer ended with status {self.trainer.returncode}")
        count = max(self.workers, 1)
        steps = sum(math.ceil(len(range(number, ROWS, count)) / BATCH) for number in range(count))
        self.ledger.require((epoch, step) for epoch in range(EPOCHS) for step in range(steps))
        require_rows(self.ledger.name, self.ledger.batches.items(), EPOCHS, ROWS)
        until = time.monotonic() + HANGS_S
        while left := {pid for pid, _, _, began in running() if self.seen.get(pid) == began}:
            if time.monotonic() > until:
                raise Failure(f"processes are left: {left}")
            time.sleep(0.05)

    def close(self):
        super().close()
        if self.trainer is not None:
            self.trainer.kill()
            self.trainer.wait()


def running():
    """The processes but for zombies: number, parent, name, and when they began."""
    for entry in os.listdir("/proc"):
        try:
            with open(f"/proc/{int(entry)}/stat", encoding="utf-8", errors="replace") as file:
                pid_name, _, rest = file.read().rpartition(")")
        except (ValueError, OSError):
            continue
        words = rest.split()
        if words[0] != "Z":
            yield int(entry), int(words[1]), pid_name.partition("(")[2], words[19]
