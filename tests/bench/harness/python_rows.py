"""The cell `python-rows`: batches of map-style data sets, which the user's own Python makes.

In seconds of CPU a row, of all processes, which do not depend on what else runs. tundish.torch.DataLoader and,
with --peers, torch's with two processes and with none take turns at the same data sets: small items, images by
OpenCV with random crops and boxes, texts through a tokenizer, and small items for two ranks. An epoch before the
first is not timed.
"""

import contextlib
import json
import statistics
import subprocess

from . import processes
from .environments import Environments
from .measure import FIRST_TIMEOUT_S, Failure, next_line
from .subjects import BENCH

PARTS = {"items": ("items", 1), "image": ("image", 1), "text": ("text", 1), "ranks": ("items", 2)}
PACKAGES = ("numpy", "torch", "cloudpickle", "opencv-python-headless", "tokenizers")


def measure(options):
    python = Environments(options.data / "environments").python_with("frameworks", PACKAGES)
    loaders = ("tundish", "torch", "bare") if options.peers else ("tundish",)
    for part, (kind, ranks) in PARTS.items():
        try:
            found = measure_part(python, options, loaders, kind, ranks)
        except Failure as failure:
            show({"part": part, "error": str(failure)}, options.json)
            continue
        for loader, line in found.items():
            if loader != "tundish":
                line["tundish_to_it"] = round(found["tundish"]["us_a_row"] / line["us_a_row"], 2)
            show({"part": part, "loader": loader, **line}, options.json)


def measure_part(python, options, loaders, kind, ranks):
    """By loader: the median, least and most of passes in turns."""
    with contextlib.ExitStack() as stack:
        subjects = {}
        for loader in loaders:
            count = ranks if loader != "bare" else 1
            subjects[loader] = [stack.enter_context(start(python, options, loader, kind, n, count)) for n in range(count)]
            for each in subjects[loader]:
                next_line(each, FIRST_TIMEOUT_S)
        first = {loader: turn(each)[1] for loader, each in subjects.items()}
        taken = {loader: [] for loader in loaders}
        for _ in range(options.passes):
            for loader, each in subjects.items():
                taken[loader].append(turn(each)[0])
    return {loader: line_of(taken[loader], first[loader]) for loader in loaders}


def start(python, options, loader, kind, rank, count):
    environment = {
        "PYTHONPATH": f"{options.build / 'sdk' / 'python'}:{BENCH}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "TUNDISH_BUILD": str(options.build),
    }
    if count > 1:
        environment |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(count)}
    words = [python, BENCH / "read_rows_of_python.py", loader, kind]
    return processes.Program(words, environment, stdin=subprocess.PIPE)


def turn(programs):
    """An epoch of all ranks: microseconds of CPU a row, and seconds to the first batch."""
    roots = [program.pid for program in programs]
    before = processes.cpu_s(roots)
    for program in programs:
        program.ask()
    lines = [next_line(program, FIRST_TIMEOUT_S) for program in programs]
    rows = sum(line["rows"] for line in lines)
    return (processes.cpu_s(roots) - before) / rows * 1e6, max(line["first_s"] for line in lines)


def line_of(taken, first_s):
    return {
        "us_a_row": round(statistics.median(taken), 2),
        "min": round(min(taken), 2),
        "max": round(max(taken), 2),
        "first_batch_s": first_s,
    }


def show(line, as_json):
    if as_json:
        print(json.dumps({"cell": "python-rows", **line}), flush=True)
    else:
        print("python-rows: " + ", ".join(f"{name} {value}" for name, value in line.items()), flush=True)
