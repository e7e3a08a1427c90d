"""A trainer that keeps count of its rows: train.py FOLDER, in which the checkpoints are.

A checkpoint is the place and all rows until then, one file for each replica; all go on at the newest step
that each of them has saved. In the job's first life they stop at the step $GATE, where the test comes in.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

import tundish

FOLDER = Path(sys.argv[1])
RANK, WORLD = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
STEPS_BETWEEN = 5
GATE = int(os.environ.get("GATE", "0")) if "SLURM_RESTART_COUNT" not in os.environ else 0


def main():
    # Not events: a signal that comes again while its handler holds an event's lock would wait for itself.
    heard = set()
    for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, lambda number, _: heard.add(number))
    saved = newest()
    rows, steps = saved["rows"], saved["steps"]
    note("began", steps)
    with tundish.open(place=saved["place"]) as reader:
        for batch in reader:
            rows += batch["value"].tolist()
            steps += 1
            if steps == GATE:
                note("waits")
                while not heard & {signal.SIGTERM, signal.SIGUSR2}:
                    time.sleep(0.05)
                    if signal.SIGUSR1 in heard:
                        note("signalled")
            if signal.SIGTERM in heard or steps % STEPS_BETWEEN == 0:
                save(f"{steps}.{RANK}", {"rows": rows, "steps": steps, "place": reader.place})
            if signal.SIGTERM in heard:
                break
    # A signal that comes once more, while the interpreter ends, would kill it.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2})
    if signal.SIGTERM not in heard:
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
