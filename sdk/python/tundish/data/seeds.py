"""tf.random.set_seed: the seed of a program."""

from __future__ import annotations

__all__ = ["current", "set_seed"]

_seed: int | None = None


def set_seed(seed: int | None) -> None:
    """The seed of datasets that are built from now on: `seed:` of the pipeline file. None: no seed."""
    global _seed
    _seed = None if seed is None else int(seed)


def current() -> int | None:
    return _seed
