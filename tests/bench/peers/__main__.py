"""Read one peer's stream pass by pass: python -m peers CELL PEER --data DIR [--first]"""

import argparse
import importlib
import itertools
import json
import multiprocessing
import os
import time

from .digest import Digest
from .touch import touch

LATENCY_BATCHES = 20000
USERS = ("mel", "stft", "png", "augment", "window", "filtered", "files")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cell")
    parser.add_argument("peer")
    parser.add_argument("--data", required=True)
    parser.add_argument("--first", action="store_true")
    options = parser.parse_args()
    peer = _module_of(options.cell).PEERS[options.peer](options.data, options.cell)
    if options.cell.startswith("latency"):
        _say(version=peer.version, latency_ns=_latency(peer))
    elif options.first:
        touch_batch(next(iter(peer.epoch())))
        _say(version=peer.version, first_batch=True)
    else:
        _read_passes(peer)
    for child in multiprocessing.active_children():
        child.kill()
    os._exit(0)  # some libraries take seconds to tear themselves down


def _module_of(cell):
    area = cell.partition("-")[0]
    name = {"startup": "criteo", "latency": "transport", **dict.fromkeys(USERS, "users")}.get(area, area)
    return importlib.import_module(f"peers.{name}")


def _read_passes(peer):
    for number in itertools.count():
        digest = Digest() if number == 0 else None
        rows = batches = touched = 0
        start = end = time.perf_counter()
        for batch in peer.epoch():
            touched += touch_batch(batch)
            if digest:
                digest.add(batch)
            rows += batch.rows
            batches += 1
            end = time.perf_counter()  # an iterator's end is not part of the pass
        more = {"digest": digest.result(), "version": peer.version, "near": peer.near} if digest else {}
        _say(**{"pass": number}, rows=rows, batches=batches, bytes=touched, seconds=end - start, **more)


def _latency(peer):
    """Nanoseconds from giving a batch back to having the next, where there is room for one."""
    stream = peer.stream
    next(stream)
    taken = []
    for _ in range(LATENCY_BATCHES):
        start = time.perf_counter_ns()
        block = next(stream)
        taken.append(time.perf_counter_ns() - start)
        touch(block.reshape(-1))
    taken.sort()
    return {name: taken[len(taken) * int(name[1:]) // 100] for name in ("p50", "p90", "p99")}


def touch_batch(batch):
    return sum(touch(part) for part in (batch.ids, batch.dense, batch.label) if part is not None)


def _say(**line):
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
