"""Map-style data sets as programs of PyTorch have them, in a module that interpreters import without torch."""

import collections
import os
import random

import numpy as np

Pair = collections.namedtuple("Pair", "image label")


class Made:
    """Items that a function of this module makes of their numbers."""

    def __init__(self, name, count=11):
        self.name, self.count = name, count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if not 0 <= index < self.count:
            raise IndexError(index)
        return globals()[self.name](index)


class Together:
    """Items of several sets side by side."""

    def __init__(self, data):
        self.data = data

    def __len__(self):
        return len(self.data[0])

    def __getitem__(self, index):
        return {each.name: each[index] for each in self.data}


class AtOnce(Made):
    """As Hugging Face's data sets: items of some indices by one call."""

    def __getitem__(self, index):
        raise AssertionError("its items are made at once")

    def __getitems__(self, indices):
        return [{"input_ids": [n, n + 1], "text": f"row {n}"} for n in indices]


def integer(n): return n
def labelled(n): return {"value": n}
def floating(n): return n / 4
def truth(n): return n % 3 == 0
def text(n): return "é" * n
def lone(n): return ("\ud800", "\udcc3\udca9", "\udcff")[n % 3] * n
def masked(n): return np.ma.array([n, 2], mask=[n % 2, 0])
def raw(n): return b"\xff" * (n % 3)
def image(n): return np.full((2, 3), n, np.uint8)
def strided(n): return (np.arange(24, dtype=np.int32) * n).reshape(4, 6)[::2, n % 3 :: 3].T
def hollow(n): return np.zeros((0, 2), np.float32)
def half(n): return np.full(2, n, np.float16)
def wide(n): return np.full((), n, np.int32)
def scalar(n): return np.float32(n)
def pair(n): return Pair(np.full(3, n, np.float32), n)
def nested(n): return {"x": (np.full(2, n, np.int16), {"y": [n, n / 2]}), "name": f"item {n}", "ok": n > 3}
def sizes(n): return np.arange(n % 4 + 1, dtype=np.float32), n
def drawn(n): return n, random.random(), np.random.rand(), np.random.default_rng(random.getrandbits(32)).random()
def seeded(n):
    np.random.seed(n)
    return n, np.random.rand(), np.random.randn(2)
def torn(n): return 1 // (n - 7)
def ended(n): return n if n != 7 else os._exit(3)
def segmented(n):
    """A picture and its mask, cropped and flipped alike."""
    image = (np.arange(12 * 12 * 3).reshape(12, 12, 3) * (n + 1) % 251).astype(np.uint8)
    mask = image[..., 0] > 100
    top, left = random.randrange(5), np.random.randint(5)
    image, mask = image[top : top + 8, left : left + 8], mask[top : top + 8, left : left + 8]
    if random.random() < 0.5:
        image, mask = image[:, ::-1], mask[:, ::-1]
    return image, {"mask": mask, "name": f"picture {n}"}
def counted(n):
    with open(os.environ["MAP_STYLE_COUNTED"], "ab") as file:
        file.write(b"x")
    return n


def padded(batch):
    """What collate_fn does with items of several lengths."""
    import torch

    longest = max(len(values) for values, _ in batch)
    rows = [np.pad(values, (0, longest - len(values))) for values, _ in batch]
    return torch.from_numpy(np.stack(rows)), {"lengths": [len(values) for values, _ in batch], "of": "rows"}


def kept(batch):
    import torch

    return [torch.stack(values) for values in zip(*batch)]


def transposed(batch):
    return tuple(zip(*batch))


class Box:
    def __init__(self, values):
        self.values = values

    def __eq__(self, other):
        return type(other) is Box and other.values == self.values


def boxed(batch):
    return Box([n for _, n in batch])


class Reversed:
    """A sampler of a program's own, which gives another order each time."""

    def __init__(self, count):
        self.count, self.turn = count, 0

    def __len__(self):
        return self.count

    def __iter__(self):
        self.turn += 1
        return iter([(self.turn + n) % self.count for n in reversed(range(self.count))])


class Uneven:
    """A batch_sampler."""

    def __len__(self):
        return 3

    def __iter__(self):
        return iter([[1, 2, 3], [7], [0, 9, 4, 5]])


class Pairs:
    """One of 12 batches, of which every other one has two rows."""

    def __len__(self):
        return 12

    def __iter__(self):
        return iter([[n] if n % 2 else [n, n + 12] for n in range(12)])


class Endless:
    """A sampler, or a batch_sampler."""

    def __init__(self, unit):
        self.unit = unit

    def __iter__(self):
        while True:
            yield self.unit


class Indexed:
    """Takes lists of indices, as an array does."""

    def __init__(self, count):
        self.values = np.arange(count) * 10

    def __len__(self):
        return len(self.values)

    def __getitem__(self, indices):
        assert isinstance(indices, list)
        return self.values[indices]
