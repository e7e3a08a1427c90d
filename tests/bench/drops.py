"""A trainer in Python that keeps batches at random: four threads drop what the fifth one reads.

    python drops.py BATCHES

Each batch, or an array of it alone, goes to one of the threads. That keeps it until a draw takes it out
of the few that it has; what they keep together is sometimes more than the lane has room for. Prints
what its own memory was after a tenth of the batches and after all, lets go of everything, and waits for
a line of standard input before it ends, so that the server can be asked.
"""

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
    reader = tundish.open()
    early = read(reader, wanted // 10, queues)
    late = read(reader, wanted - wanted // 10, queues)
    for one, thread in zip(queues, threads):
        one.put(None)
        thread.join()
    print(json.dumps({"batches": wanted, "early_mb": early, "late_mb": late}), flush=True)
    sys.stdin.readline()


def read(reader, wanted, queues):
    """Megabytes of this process beside the mapping, after so many batches."""
    draw = random.Random(wanted)
    count = 0
    while count < wanted:
        for batch in reader:
            draw.choice(queues).put(draw.choice((batch, batch["ids"])))
            count += 1
            if count == wanted:
                break
    return memory_mb(os.getpid())["other"]


def drop(draw, taken):
    kept = []
    while (one := taken.get()) is not None:
        kept.append(one)
        while kept and draw.random() < len(kept) / (KEPT + 1):
            kept.pop(draw.randrange(len(kept)))


if __name__ == "__main__":
    main(int(sys.argv[1]))
