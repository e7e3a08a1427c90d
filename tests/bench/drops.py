"""A trainer in Python that keeps batches at random: four threads drop what the fifth one reads.

    python drops.py BATCHES

Each batch, or an array of it alone, goes to one of the threads. That keeps it until a draw takes it out
of the few that it has; what they keep together is sometimes more than the lane has room for. Prints
what its own memory was after a tenth of the batches and after all, lets go of everything, and waits for
a line of standard input before it ends, so that the server can be asked.
"""

import itertools
import json
import os
import queue
import random
import sys
import threading
import warnings

import tundish
from harness.processes import memory_mb

THREADS, KEPT, WAITING = 4, 2, 2


def main(wanted):
    warnings.simplefilter("ignore")  # the one of batches that were copied, for they held up the lane
    queues = [queue.Queue(WAITING) for _ in range(THREADS)]
    threads = [
        threading.Thread(target=drop, args=(random.Random(number), one), daemon=True)
        for number, one in enumerate(queues)
    ]
    for thread in threads:
        thread.start()
    batches = endless(tundish.open())
    early = read(batches, wanted // 10, queues)
    late = read(batches, wanted - wanted // 10, queues)
    for one, thread in zip(queues, threads):
        one.put(None)
        thread.join()
    print(json.dumps({"batches": wanted, "early_mb": early, "late_mb": late}), flush=True)
    sys.stdin.readline()


def endless(reader):
    while True:
        yield from reader


def read(batches, wanted, queues):
    """Megabytes of this process beside the mapping, after so many batches."""
    draw = random.Random(wanted)
    for batch in itertools.islice(batches, wanted):
        draw.choice(queues).put(draw.choice((batch, batch["ids"])))
    return memory_mb(os.getpid())["other"]


def drop(draw, taken):
    kept = []
    while (one := taken.get()) is not None:
        kept.append(one)
        while kept and draw.random() < len(kept) / (KEPT + 1):
            kept.pop(draw.randrange(len(kept)))


if __name__ == "__main__":
    main(int(sys.argv[1]))
