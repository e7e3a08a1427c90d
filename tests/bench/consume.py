"""A trainer in Python that only looks: what consume.c does, through the package, in one framework.

    python consume.py numpy|torch|jax [--zero-copy | --jit] [--dense COLUMN] [--label COLUMN]

Prints the lines that consume prints. It waits for a line of standard input before each pass, and ends
with it. With --bursts it times batches that are there already; with --memory it reads passes and
prints what its own memory was before and after.
"""

import argparse
import importlib
import itertools
import json
import os
import statistics
import sys
import time

import tundish
from harness.processes import memory_mb
from peers.digest import Digest
from peers.peer import Batch
from peers.touch import PAGE_BYTES, touch

BURSTS, FILL_S = 200, 0.01  # as in consume.c
WARM_PASSES, PASSES = 1, 5  # of --memory


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("framework", choices=("numpy", "torch", "jax"))
    parser.add_argument("--zero-copy", action="store_true", help="of torch")
    parser.add_argument("--jit", action="store_true", help="of JAX: numpy's arrays into a jitted step")
    parser.add_argument("--dense")
    parser.add_argument("--label")
    parser.add_argument("--bursts", action="store_true")
    parser.add_argument("--memory", action="store_true")
    options = parser.parse_args()
    framework = importlib.import_module(options.framework)
    if options.bursts:
        say(batch_us=time_bursts())
    elif options.memory:
        say(**measure_memory())
    else:
        read_passes(options, f"{options.framework} {framework.__version__}")


def loop_of(options):
    """What a training program's `for` is over, once for each epoch."""
    if options.framework == "torch":
        from tundish.torch import DataLoader

        return DataLoader(zero_copy=options.zero_copy)
    if options.framework == "jax":
        import jax

        jax.config.update("jax_enable_x64", True)
        return tundish.open(format="numpy" if options.jit else "jax")
    return tundish.open()


def touch_columns(batch):
    return sum(map(touch, batch.values()))


def jitted_touch():
    """The same in a step that is given a batch as it is: JAX takes numpy's arrays without a copy."""
    import jax

    @jax.jit
    def step(columns):
        return [column.reshape(-1)[:: PAGE_BYTES // column.itemsize].sum() for column in columns]

    def touch_in_step(batch):
        columns = list(batch.values())
        step(columns)
        return sum(column.nbytes for column in columns)

    return touch_in_step


def read_passes(options, version):
    loop = loop_of(options)
    touch_all = jitted_touch() if options.jit else touch_columns
    for number in itertools.count():
        if not sys.stdin.readline():
            return
        digest = Digest() if number == 0 else None
        line = read_pass(loop, touch_all, digest, options)
        more = {"digest": digest.result(), "version": version} if digest else {}
        say(**{"pass": number}, **line, **more)


def read_pass(loop, touch_all=touch_columns, digest=None, options=None):
    rows = batches = touched = 0
    start = time.perf_counter()
    for batch in loop:
        touched += touch_all(batch)
        rows += len(batch["ids"])
        batches += 1
        if digest:
            names = ("ids", options.dense, options.label)
            digest.add(Batch(*(batch[name] if name else None for name in names)))
    return {"rows": rows, "batches": batches, "bytes": touched, "seconds": time.perf_counter() - start}


def time_bursts():
    """Microseconds for a batch of columns of a page each, of half the lane's: nothing is waited for."""
    reader = tundish.open()
    batches = iter(reader)
    count = reader.info.slot_count // 2
    taken = []
    while len(taken) < BURSTS:
        time.sleep(FILL_S)
        start = time.perf_counter()
        for batch in itertools.islice(batches, count):
            for column in batch.values():
                column.item(0)
        taken.append((time.perf_counter() - start) * 1e6 / count)
    return round(statistics.median(taken), 3)


def measure_memory():
    """Megabytes of this process beside the mapping, before the reader is open and after all passes."""
    before = memory_mb(os.getpid())["other"]
    reader = tundish.open()
    for _ in range(WARM_PASSES):
        read_pass(reader)
    warm = memory_mb(os.getpid())["other"]
    for _ in range(PASSES):
        read_pass(reader)
    after = memory_mb(os.getpid())["other"]
    return {"before_mb": before, "warm_mb": warm, "after_mb": after}


def say(**line):
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
