"""Places between any two numbers of nodes: a job that resumes at a place of a job of other size goes on as
if undisturbed, to the last row.

    test_places.py [--seed N] [--cases N]

For each pair of sizes a random pipeline is dealt by a job of the first, in whole steps of all its nodes,
and again from the places that a job of the second size takes at each of its steps.
"""

import argparse
import random
import sys
import tempfile
from dataclasses import replace
from itertools import product

from order.generate import Generator
from test_order import Probe, make_files

SIZES = (1, 2, 3, 8, 64, 500, 4096)
LARGE = 500  # jobs of so many nodes take longer
BOUNDS = {True: {"epochs": 1, "steps": 2}, False: {"epochs": 2, "steps": 4}}


def has_rows(answers):
    return any(kind == "slice" and columns for kind, *_, columns in answers)


def complaint(answers):
    """A sentence, None, or "refused" for a pipeline that there is not."""
    if any(kind == "refused" for kind, *_ in answers):
        return "refused"
    wrong = [answer for answer in answers if answer[0] in ("resume", "died")]
    return "\n".join(map(str, wrong)) or None


def cases_of(seed, files, nodes, from_nodes):
    """Pipelines that all nodes share: files of their own tie a place to a number of nodes."""
    is_large = max(nodes, from_nodes) >= LARGE
    while True:
        seed += 1
        case = Generator(random.Random(seed), files).case()
        if not case.by_file and not case.from_function:
            yield seed, replace(case, workers=nodes, from_workers=from_nodes, replicas=1 + seed % 2,
                                from_replicas=1 + seed // 2 % 2, **BOUNDS[is_large])  # fmt: skip


def run(arguments, folder):
    files, probe, dealt = make_files(folder), Probe(), 0
    for nodes, from_nodes in product(SIZES, SIZES):
        wanted = 1 if max(nodes, from_nodes) >= LARGE else arguments.cases
        for seed, case in cases_of(arguments.seed, files, nodes, from_nodes):
            answers = probe.ask(case)
            text = complaint(answers)
            if text not in (None, "refused"):
                print(f"{nodes} nodes from a place of {from_nodes}, seed {seed}:\n{case.text()}\n{text}")
                return 1
            wanted -= text is None and has_rows(answers)
            dealt += text is None
            if wanted <= 0:
                break
    if not probe.close():
        print("the probe did not end well")
        return 1
    print(f"{dealt} jobs went on where others of other sizes stood")
    return 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=10, help="for each pair of sizes, if they are small")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tundish-property-") as folder:
        return run(arguments, folder)


if __name__ == "__main__":
    sys.exit(main())
