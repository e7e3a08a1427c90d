"""The click log's columns and vocabularies."""

import os

INTEGERS = [f"I{i}" for i in range(1, 14)]
TERMS = [f"C{i}" for i in range(1, 27)]
COLUMNS = ["label", *INTEGERS, *TERMS]


def vocabulary_path(folder, term):
    return os.path.join(folder, "vocab", f"{term}.txt")


def vocabulary(folder, term):
    with open(vocabulary_path(folder, term), encoding="ascii") as file:
        return file.read().split("\n")[:-1]
