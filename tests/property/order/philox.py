"""TensorFlow's Philox4x32-10 and how its ops are seeded, as written down, one word at a time."""

import random

MASK = 0xFFFFFFFF
MODULUS = 0x7FFFFFFF


class Philox:
    """key = seed, upper half of the counter = seed2."""

    def __init__(self, seed, seed2):
        self.key = (seed & MASK, seed >> 32)
        self.block_number = 0
        self.upper = (seed2 & MASK, seed2 >> 32)
        self.words = []

    def next(self):
        if not self.words:
            self.words = self._block()
            self.block_number += 1
        return self.words.pop(0)

    def _block(self):
        counter = [self.block_number & MASK, self.block_number >> 32, *self.upper]
        k0, k1 = self.key
        for _ in range(10):
            p0, p1 = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
            counter = [
                (p1 >> 32) ^ counter[1] ^ k0,
                p1 & MASK,
                (p0 >> 32) ^ counter[3] ^ k1,
                p0 & MASK,
            ]
            k0, k1 = (k0 + 0x9E3779B9) & MASK, (k1 + 0xBB67AE85) & MASK
        return counter


def stateless_words(seed, seed2):
    """Of a stateless op, whose seeds are scrambled first."""
    scrambled = Philox(0x02461E293EC8F720, seed2)
    scrambled.block_number = seed
    mixed = scrambled._block()
    return Philox(mixed[1] << 32 | mixed[0], mixed[3] << 32 | mixed[2])


def stateless_double(seed, seed2):
    """The first number, 0 <= u < 1, of a stateless op."""
    drawn = stateless_words(seed, seed2)
    return ((drawn.next() & 0xFFFFF) << 32 | drawn.next()) / 2**52


class Seeds:
    """The seeds of the random stages of a file, in the order written."""

    def __init__(self, file_seed):
        self.file_seed = file_seed
        self.python = random.Random(file_seed)

    def pair(self, stage_seed, place_in_function):
        """place_in_function: a list of one count inside a function's body, else None."""
        if stage_seed is not None:
            return _pair(87654321 if self.file_seed is None else self.file_seed, stage_seed)
        if place_in_function is not None:
            place_in_function[0] += 1
            return _pair(self.file_seed, place_in_function[0] - 1)
        return _pair(self.file_seed, self.python.randint(0, MODULUS))


def _pair(first, second):
    first, second = first % MODULUS, second % MODULUS
    return (first, MODULUS) if (first, second) == (0, 0) else (first, second)
