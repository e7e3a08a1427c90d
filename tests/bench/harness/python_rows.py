"""The cell `python-rows`: batches of map-style data sets, which the user's own Python makes.

In seconds of CPU a row, of all processes, which do not depend on what else runs. tundish.torch.DataLoader and,
with --peers, torch's with two processes and with none take turns at the same data sets: small items, images by
OpenCV with random crops and boxes, texts through a tokenizer, and small items for two ranks. An epoch before the
first is not timed. With --threads it is tundish.torch.DataLoader alone, in rows a second, too, with each number of
interpreters.
"""

import contextlib
import json
import statistics
import subprocess
import time

from . import processes
from .environments import Environments
from .measure import FIRST_TIMEOUT_S, Failure, next_line
from .subjects import BENCH, OF_THREADS

PARTS = {"items": ("items", 1), "image": ("image", 1), "text": ("text", 1), "ranks": ("items", 2)}
PACKAGES = ("numpy", "torch", "cloudpickle", "opencv-python-headless", "tokenizers")


def measure(options):
    loaders = ("tundish", "torch", "bare") if options.peers and not options.threads else ("tundish",)
    for part, (kind, ranks) in PARTS.items():
        first = None
        for count in options.threads or [2]:
            line = {"part": part, **({"interpreters": count} if options.threads else {})}
            try:
                python = Environments(options.data / "environments").python_with("frameworks", PACKAGES)
                found = measure_part(python, options, loaders, kind, ranks, count)
            except Failure as failure:
                show({**line, "error": str(failure)}, options.json)
                continue
            first = first or found["tundish"]
            for loader, figures in found.items():
                if loader != "tundish":
                    figures["tundish_to_it"] = round(found["tundish"]["us_a_row"] / figures["us_a_row"], 2)
                elif options.threads:
                    figures["ratio_to_first"] = round(figures["rows_per_s"] / first["rows_per_s"], 2)
                show({**line, "loader": loader, **figures}, options.json)


def measure_part(python, options, loaders, kind, ranks, interpreters):
    """By loader: the median, least and most of passes in turns."""
    with contextlib.ExitStack() as stack:
        subjects = {}
        for loader in loaders:
            count = ranks if loader != "bare" else 1
            started = [start(python, options, loader, kind, n, count, interpreters) for n in range(count)]
            subjects[loader] = [stack.enter_context(each) for each in started]
            for each in subjects[loader]:
                next_line(each, FIRST_TIMEOUT_S)
        first = {loader: turn(each)[-1] for loader, each in subjects.items()}
        taken, stop = {loader: [] for loader in loaders}, time.monotonic() + OF_THREADS["budget_s"]
        for number in range(options.passes):
            if options.threads and number and time.monotonic() > stop:
                break
            for loader, each in subjects.items():
                taken[loader].append(turn(each)[:2])
    return {loader: line_of(taken[loader], first[loader]) for loader in loaders}


def start(python, options, loader, kind, rank, count, interpreters):
    environment = {
        "PYTHONPATH": f"{options.build / 'sdk' / 'python'}:{BENCH}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "TUNDISH_BUILD": str(options.build),
    }
    if count > 1:
        environment |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(count)}
    words = [python, BENCH / "read_rows_of_python.py", loader, kind, str(interpreters)]
    return processes.Program(words, environment, stdin=subprocess.PIPE)


def turn(programs):
    """An epoch of all ranks: microseconds of CPU a row, rows a second, and seconds to the first batch."""
    roots = [program.pid for program in programs]
    before, begin = processes.cpu_s(roots), time.monotonic()
    for program in programs:
        program.ask()
    lines = [next_line(program, FIRST_TIMEOUT_S) for program in programs]
    rows, took_s = sum(line["rows"] for line in lines), time.monotonic() - begin
    return (processes.cpu_s(roots) - before) / rows * 1e6, rows / took_s, max(line["first_s"] for line in lines)


def line_of(taken, first_s):
    costs, rates = zip(*taken, strict=True)
    return {
        "us_a_row": round(statistics.median(costs), 2),
        "min": round(min(costs), 2),
        "max": round(max(costs), 2),
        "rows_per_s": round(statistics.median(rates), 1),
        "first_batch_s": first_s,
    }


def show(line, as_json):
    if as_json:
        print(json.dumps({"cell": "python-rows", **line}), flush=True)
    else:
        print("python-rows: " + ", ".join(f"{name} {value}" for name, value in line.items()), flush=True)
