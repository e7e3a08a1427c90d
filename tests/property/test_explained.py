#!/usr/bin/env python3
"""Random whole pipelines: the rows that `tundish explain` names are those that `tundish peek` gives.

    test_explained.py [--seed N] [--cases N] [--keep-going] [--folder DIR]

For some batches of each pipeline: there are as many rows, their columns put behind each other are the
batch's, and the numbers that say which row it is are among those of the sources named. Rows of files
are told by the number of file and record, as small_files wrote them.
"""

import argparse
import random
import re
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "data"))
import small_files  # noqa: E402
from pipelines.generate import PipelineGenerator  # noqa: E402
from pipelines.play import Player, Wrong  # noqa: E402

FILE_ROWS = (7, 1, 0, 12, 5)
BATCHES = 3  # of each pipeline
PADDING = {0, -1}


def check(player, pipeline, chooser):
    """How many batches were explained, and how many rows compared with their sources."""
    player.begin(pipeline)
    peeked = player.peek(pipeline.workers)
    if peeked.refusal is not None or "evaluation_shards" in pipeline.distribute:
        return 0, 0
    batches = [(*key, *batch) for key, output in peeked.outputs.items() for batch in output.batches]
    chosen = chooser.sample(batches, min(BATCHES, len(batches)))
    rows = 0
    for worker, replica, epoch, step, columns in chosen:
        explained = player.explain(pipeline.workers, worker, replica, epoch, step)
        try:
            rows += compare(pipeline, columns, explained)
        except Wrong as wrong:
            raise Wrong(f"worker {worker} replica {replica} {epoch}/{step}: {wrong}") from None
    return len(chosen), rows


def compare(pipeline, columns, explained):
    """How many rows were compared with their sources."""
    rows = explained["rows"]
    if explained["error"] is not None or len(rows) != explained["row_count"]:
        raise Wrong(f"error {explained['error']}, {len(rows)} of {explained['row_count']} rows")
    if [row["row"] for row in rows] != list(range(len(rows))):
        raise Wrong("rows are not numbered")
    if not explained["is_batch"] and not rows:
        return 0  # zeros, where other workers still have something
    for name, column in columns.items():
        if "shape" not in column or (explained["is_batch"] and not column["shape"]):
            continue  # not dense, or one value for the whole batch
        values = [value for row in rows for value in row["columns"][name]["values"]]
        if values != column["values"]:
            raise Wrong(f"{name}: {values} by row, {column['values']} in the batch")
    lengths = {column["shape"][0] for column in columns.values() if column.get("shape")}
    if explained["is_batch"] and lengths and len(rows) != max(lengths):
        raise Wrong(f"{len(rows)} rows, and columns have {lengths}")
    # Under `skip` a row may be a batch of which all rows are left out.
    if not all(row["sources"] for row in rows) and "on_error" not in pipeline.deliver:
        raise Wrong("a row has no source")
    if changes_numbers(pipeline.text()) or "looks across" in str(explained["notes"]):
        return 0
    return sum(compare_sources(pipeline, row) for row in rows)


def compare_sources(pipeline, row):
    """Whether the numbers of the row could be compared with those of its sources."""
    numbers = {number_of(source) for source in row["sources"]}
    numbers |= {mark["index"] for mark in row["marks"] if "index" in mark}
    told = [row["columns"][name]["values"] for name in pipeline.columns if name in row["columns"]]
    if None in numbers or not told:
        return False
    for values in told:
        if not set(values) - PADDING <= numbers:
            raise Wrong(f"row {row['row']} has {values}, its sources {numbers}")
    inner = [source for source in row["sources"] if not source.get("outer")]
    if len(inner) == len(told) == 1 and len(told[0]) == 1 and "enumerate" not in str(pipeline.stages):
        if told[0][0] != number_of(inner[0]):
            raise Wrong(f"row {row['row']} is {told[0][0]}, and its source {number_of(inner[0])}")
    return True


def number_of(source):
    """The number that its row holds; None: it does not say."""
    if "value" in source:
        return source["value"]
    part = re.search(r"/(part-(\d+)|bad)$", source["file"] or "")
    if part and source["record"] is not None:
        return 100 * int(part[2] or 9) + source["record"]
    return None


def changes_numbers(text):
    """A map gives a number's column other values."""
    return re.search(r'map: \{(\w+): "[^"]*\b\1\b', text) is not None


def run(options, folder):
    files = Path(folder, "files")
    files.mkdir(parents=True, exist_ok=True)
    small_files.write(files, [range(100 * i, 100 * i + n) for i, n in enumerate(FILE_ROWS)])
    player, explained, compared, wrong = Player(folder, options.patience), 0, 0, 0
    for seed in range(options.seed, options.seed + options.cases):
        pipeline = PipelineGenerator(random.Random(seed), str(files)).pipeline()
        try:
            batches, rows = check(player, pipeline, random.Random(seed))
            explained, compared = explained + batches, compared + rows
        except Wrong as complaint:
            wrong += 1
            print(f"\n=== seed {seed}: {complaint}\n--- by {pipeline.knobs()} and\n{pipeline.text()}")
            print("\n".join(" ".join(map(str, command)) for command in player.commands), flush=True)
            if not options.keep_going:
                break
    print(f"{explained} batches explained, {compared} rows compared, {wrong} pipelines wrong")
    # Agreement about next to nothing is none.
    return 1 if wrong or explained < options.cases or 4 * compared < options.cases else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--keep-going", action="store_true", help="after a failure")
    parser.add_argument("--patience", type=float, default=300, help="seconds until a hang is one")
    parser.add_argument("--folder", help="work there, and leave it as it is then")
    options = parser.parse_args()
    if options.folder:
        return run(options, options.folder)
    with tempfile.TemporaryDirectory(prefix="tundish-explained-") as folder:
        return run(options, folder)


if __name__ == "__main__":
    sys.exit(main())
