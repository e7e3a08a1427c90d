"""Iterable data sets as programs of PyTorch have them, in a module that workers import."""

import itertools
import os
import random
import sys
import time

import numpy as np
import torch
from torch.utils.data import IterableDataset, get_worker_info


def worker():
    """The number of this worker, and of how many."""
    info = get_worker_info()
    return (0, 1) if info is None else (info.id, info.num_workers)


class Shards(IterableDataset):
    """Numbers, of which each worker has one shard. Those of earlier workers are shorter."""

    def __init__(self, count=37, make=None):
        self.count, self.make = count, make

    def __iter__(self):
        number, workers = worker()
        ends = [self.count * n * n // (workers * workers) for n in range(workers + 1)]
        for n in range(ends[number], ends[number + 1]):
            yield n if self.make is None else globals()[self.make](n)


def nest(n):
    return {
        "tensor": torch.full((2, 3), n / 2),
        "half": torch.tensor(n, dtype=torch.bfloat16),
        "array": np.arange(n, n + 3, dtype=np.int32),
        "text": f"Zeile {n} ü",
        "lone": "\udcc3\udca9" * n,
        "pair": (n, n / 4),
        "flag": n % 2 == 0,
    }


def large(n):
    """Rows that grow, of which a batch comes by memory that the worker and the program share."""
    return torch.full((500 + 30 * n, 100), n, dtype=torch.bfloat16), np.full((n % 3, 7), n), f"row {n}"


def large_set(n):
    return {"n": torch.arange(20000 + n), "set": frozenset([n])}


def labelled(n):
    return {"value": n}


def uneven(n):
    """Rows that default collation takes one at a time alone."""
    return {"n": torch.arange(n), "set": frozenset([n])}


def draws(n):
    return n, random.random(), float(torch.rand(())), float(np.random.rand())


class Counting(IterableDataset):
    """Without end; an epoch is a number that the program sets."""

    epoch = 0

    def __iter__(self):
        number, _ = worker()
        for n in itertools.count():
            yield 1000 * self.epoch + 100 * number + n


class Talks(IterableDataset):
    def __iter__(self):
        print("begins", flush=True)
        yield from range(4)


class Noting(IterableDataset):
    """Writes a line into a file when it is begun, and for each item."""

    def __init__(self, path, count=6):
        self.path, self.count = path, count

    def __iter__(self):
        self.note(f"begin {worker()[0]}")
        for n in range(self.count):
            self.note(f"item {n}")
            yield np.full(20000, n)

    def note(self, text):
        with open(self.path, "a") as file:
            file.write(text + "\n")


class Mute(Exception):
    def __str__(self):
        raise RuntimeError("it has no text")


class Broken(IterableDataset):
    def __init__(self, after, how="raise"):
        self.after, self.how = after, how

    def __iter__(self):
        for n in range(self.after):
            yield n
        if self.how == "end":
            os._exit(3)
        if self.how == "hang":
            time.sleep(600)
        if self.how == "exit":
            sys.exit("no more")
        if self.how == "nul":
            raise ValueError("cut\0off")
        if self.how == "mute":
            raise Mute
        raise ValueError(f"shard {worker()[0]} is cut off")


def told(number):
    """For worker_init_fn."""
    torch.manual_seed(number)
    assert worker()[0] == number


def collate(items):
    return torch.tensor(items).sum(), len(items), worker()[0]
