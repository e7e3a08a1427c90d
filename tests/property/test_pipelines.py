#!/usr/bin/env python3
"""Random whole pipelines: planned, peeked at, served and read, in all ways that must come to the same.

    test_pipelines.py [--seed N] [--cases N | --minutes M] [--keep-going] [--show] [--folder DIR]

What must hold: nothing crashes, hangs or is left in /dev/shm; what is served is what is peeked at,
whatever the threads, the compression and the kind of memory; a stream whose server was killed goes on
as if undisturbed; the rows of several workers are the rows of one.

It needs a build (TUNDISH_BUILD, by default build/). Pipelines are numbered from the seed: `--seed S --cases 1` repeats the one that failed. It is made
smaller, and printed with the commands that ran it, in a folder that is kept if it is named.
"""

import argparse
import random
import shlex
import sys
import tempfile
import time
from collections import Counter
from dataclasses import fields, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "data"))
import small_files  # noqa: E402
from order.generate import variants  # noqa: E402
from pipelines.compare import check  # noqa: E402
from pipelines.generate import PipelineGenerator  # noqa: E402
from pipelines.play import Player, Wrong  # noqa: E402
from pipelines.regressions import regressions  # noqa: E402

FILE_ROWS = (7, 1, 0, 12, 5)
SHRINKING_S = 30
# Values that a knob may have instead, simplest first.
SIMPLER = {"workers": (1, 2), "threads": (1,), "readers": (1, 2), "in_turn": (False,), "seed": (1,),
           "kill_after": (0, 1), "kill_readers": (False,), "state": (False,), "steps": (3, 10)}  # fmt: skip


def complaint(player, pipeline):
    """What is wrong, or None; and how it ended."""
    try:
        return None, check(player, pipeline)
    except Wrong as wrong:
        return str(wrong), "wrong"


def smaller(pipeline):
    for stages in variants(pipeline.stages):
        yield replace(pipeline, stages=stages)
    for name in ("distribute", "deliver"):
        knobs = getattr(pipeline, name)
        for key in knobs:
            yield replace(pipeline, **{name: {k: v for k, v in knobs.items() if k != key}})
    for field in fields(pipeline):
        for value in SIMPLER.get(field.name, ()):
            if getattr(pipeline, field.name) != value:
                yield replace(pipeline, **{field.name: value})


def shrink(player, pipeline, text):
    """A smallest pipeline with a complaint of the same kind."""
    kind = text.split("\n")[0][:12]
    until = time.monotonic() + SHRINKING_S
    again = True
    while again:
        again = False
        for one in smaller(pipeline):
            if time.monotonic() > until:
                return pipeline
            try:
                found, _ = complaint(player, one)
            except (KeyError, TypeError, IndexError, ValueError):
                continue  # no pipeline any more
            if found and found.startswith(kind):
                pipeline, again = one, True
                break
    return pipeline


def report(player, label, pipeline, text):
    print(f"\n=== {label}: {text}\n--- by {pipeline.knobs()} and\n{pipeline.text()}", flush=True)
    small = shrink(player, pipeline, text)
    text, _ = complaint(player, small)
    print(f"--- smaller: {text}\n--- by {small.knobs()} and\n{small.text()}--- commands:")
    for command in player.commands:
        print("   ", shlex.join(map(str, command)))
    sys.stdout.flush()


def cases(options, folder):
    """(label, pipeline): what was found once, then what is drawn."""
    if options.regressions:
        for cause, pipeline in regressions(folder).items():
            yield cause, pipeline
    seed, until = options.seed, time.monotonic() + 60 * (options.minutes or 0)
    while time.monotonic() < until if options.minutes else seed < options.seed + options.cases:
        yield f"seed {seed}", PipelineGenerator(random.Random(seed), folder).pipeline()
        seed += 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--minutes", type=float, help="instead of --cases")
    parser.add_argument("--regressions", action="store_true", help="first what was found once")
    parser.add_argument("--keep-going", action="store_true", help="after a failure")
    parser.add_argument("--show", action="store_true", help="print every pipeline")
    parser.add_argument("--patience", type=float, default=300, help="seconds until a hang is one")
    parser.add_argument("--folder", help="work there, and leave it as it is then")
    options = parser.parse_args()
    if options.folder:
        return run(options, options.folder)
    with tempfile.TemporaryDirectory(prefix="tundish-pipelines-") as folder:
        return run(options, folder)


def run(options, folder):
    files = Path(folder, "files")
    files.mkdir(parents=True, exist_ok=True)
    small_files.write(files, [range(100 * i, 100 * i + n) for i, n in enumerate(FILE_ROWS)])
    player, outcomes = Player(folder, options.patience), Counter()
    for label, pipeline in cases(options, str(files)):
        if options.show:
            print(f"{label}\n{pipeline.text()}", flush=True)
        text, outcome = complaint(player, pipeline)
        outcomes[outcome] += 1
        if text:
            report(player, label, pipeline, text)
            if not options.keep_going:
                break
    print(", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items())))
    if outcomes["wrong"]:
        return 1
    # Agreement about next to nothing is none.
    return 0 if outcomes["ended"] * 2 >= outcomes.total() else 1


if __name__ == "__main__":
    sys.exit(main())
