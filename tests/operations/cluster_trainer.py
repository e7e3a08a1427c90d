"""A trainer that keeps count of its rows: train.py FOLDER, in which the checkpoints are.

A checkpoint is the place and all rows until then, one file for each replica; all go on at the newest step
that each of them has saved. In the job's first life they stop at the step $GATE, where the test comes in.
"""

import json
import os
import signal
import sys
import threading
from pathlib import Path

import tundish

FOLDER = Path(sys.argv[1])
RANK, WORLD = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
STEPS_BETWEEN = 5
GATE = int(os.environ.get("GATE", "0")) if "SLURM_RESTART_COUNT" not in os.environ else 0


def main():
    is_asked, is_signalled, goes_on = threading.Event(), threading.Event(), threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: is_asked.set())
    signal.signal(signal.SIGUSR1, lambda *_: is_signalled.set())  # comes more than once
    signal.signal(signal.SIGUSR2, lambda *_: goes_on.set())
    saved = newest()
    rows, steps = saved["rows"], saved["steps"]
    note("began", steps)
    with tundish.open(place=saved["place"]) as reader:
        for batch in reader:
            rows += batch["value"].tolist()
            steps += 1
            if steps == GATE:
                note("waits")
                while not is_asked.is_set() and not goes_on.wait(timeout=0.05):  # lets handlers run
                    if is_signalled.is_set():
                        note("signalled")
            if is_asked.is_set() or steps % STEPS_BETWEEN == 0:
                save(f"{steps}.{RANK}", {"rows": rows, "steps": steps, "place": reader.place})
            if is_asked.is_set():
                break
    # A signal that comes once more, while the interpreter ends, would kill it.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2})
    if not is_asked.is_set():
        save(f"all.{RANK}", rows)


def newest():
    steps = {int(path.stem) for path in FOLDER.glob("*.0") if path.stem.isdigit()}
    whole = [step for step in steps if all((FOLDER / f"{step}.{rank}").exists() for rank in range(WORLD))]
    if not whole:
        return {"rows": [], "steps": 0, "place": None}
    return json.loads((FOLDER / f"{max(whole)}.{RANK}").read_text())


def save(name, what):
    """Never half a file."""
    new = FOLDER / f"new.{RANK}"
    new.write_text(json.dumps(what))
    new.rename(FOLDER / name)


def note(what, value=0):
    save(f"{what}.{RANK}", value)


main()
