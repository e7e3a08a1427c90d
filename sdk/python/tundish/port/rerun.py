"""The parts of a program that run under TensorFlow itself: functions, and datasets, for which there is no stage.

A pipeline file has `python: {call: "tundish.port.rerun:Function"}` and `program` with this module. Either runs
the program again, and takes what it makes by its number, which is the same in each run.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

_TRIED = 4  # rows
_SEEDS = 2**31 - 1

# Before TensorFlow is imported: one thread, no GPU, and the same kernels as in `tundish port`.
for _name, _value in (
    ("TF_CPP_MIN_LOG_LEVEL", "3"), ("TF_ENABLE_ONEDNN_OPTS", "0"), ("TF_NUM_INTRAOP_THREADS", "1"),
    ("TF_NUM_INTEROP_THREADS", "1"), ("CUDA_VISIBLE_DEVICES", ""),
):  # fmt: skip
    os.environ.setdefault(_name, _value)


class Function:
    """The function of a `map` or `filter`, on rows. program: MODULE:FUNCTION, with its words. step: the number
    of the dataset, and `at` how it was made, as "input.py:12 map"; takes, gives: the columns' names by their
    paths. draws: TensorFlow's own draws are seeded for each row. fills: as in a comparison."""

    def __init__(
        self,
        program: str,
        step: int,
        at: str,
        takes: Sequence[str],
        gives: Sequence[str],
        words: Sequence[str] = (),
        draws: bool = False,
        fills: bool = False,
    ) -> None:
        from . import datasets

        found, _ = _made(program, words, step, at, fills)
        (parameter,) = datasets.FUNCTIONS[found.name]
        traced = found.arguments[parameter]
        self._function: Callable[..., Any] = traced.function
        self._inputs, self._takes = traced.inputs, dict(zip(_paths(traced.inputs), takes, strict=True))
        self._outputs = list(zip(gives, _leaves(found), strict=True))
        self._draws = draws
        self.tundish_source = _file(program)

    def __call__(self, row: dict[str, Any], rng: Any = None) -> dict[str, Any]:
        if self._draws and rng is not None:
            import tensorflow as tf

            tf.random.set_seed(int(rng.integers(_SEEDS)))
        return self.made(_nest(self._inputs, {path: row[name] for path, name in self._takes.items()}))

    def made(self, arguments: Sequence[Any]) -> dict[str, Any]:
        """The columns for the function's arguments."""
        result = self._function(*arguments)
        return {name: _array(_at(result, path), spec) for name, (path, spec) in self._outputs}

    def tried(self, elements: Iterator[Any]) -> dict[str, Any]:
        """The results for some elements, and how long one takes."""
        made, seconds = [], 0.0
        for element in elements:
            arguments = element if _is_plain_tuple(element) else (element,)
            begin = time.perf_counter()
            made.append(self.made(arguments))
            seconds = time.perf_counter() - begin  # of the last one: the first is warm-up
        return {"ranks": _ranks(made), "seconds": seconds}


def _made(target: str, words: Sequence[str], number: int, at: str, fills: bool) -> tuple[Any, Any]:
    """How the program made the dataset with that number, and the dataset."""
    key = target, tuple(words), fills
    if key not in _made_already:
        _made_already[key] = _run(target, words, fills)
    steps = _made_already[key]
    if number >= len(steps) or described(steps[number][0]) != at:
        raise RuntimeError(f"{target} makes other datasets than when it was ported ({at}): run tundish port again")
    return steps[number]


def _run(target: str, words: Sequence[str], fills: bool) -> list[tuple[Any, Any]]:
    """Run the program, once in an interpreter for all that it takes of it."""
    from . import datasets, porting, program

    if not _made_already:
        porting.patch()
    datasets.Draws.begin(fills)
    if not fills:
        import tensorflow as tf

        tf.random.set_seed(int(os.environ.get("TUNDISH_SEED", "0")) % 2**31)  # of what has no seed, the same in each run
        datasets.Draws.seed = None
    _results.append(program.run(target, list(words)))
    return list(datasets.made_steps)


_made_already: dict[tuple[str, tuple[str, ...], bool], list[tuple[Any, Any]]] = {}
_results: list[Any] = []  # kept, as the programs would


def described(step: Any) -> str:
    """The line and the method of a step."""
    return f"{os.path.basename(step.origin[0])}:{step.origin[1]} {step.name}"


def _file(target: str) -> str | None:
    module = sys.modules.get(os.path.basename(target.partition(":")[0]).removesuffix(".py"))
    return getattr(module, "__file__", None)


# Nests. The order of paths does not depend on that of keys.


def _paths(nest: Any) -> list[tuple[Any, ...]]:
    from ..data import nest as nests

    return sorted((path for path, _ in nests.paths(nest)), key=lambda path: tuple(map(str, path)))


def _leaves(step: Any) -> list[tuple[tuple[Any, ...], Any]]:
    """The paths and specs of what its function gives."""
    import tensorflow as tf

    if step.name == "filter":
        return [((), tf.TensorSpec([], tf.bool))]
    return [(path, _at(step.element, path)) for path in _paths(step.element)]


def _at(nest: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        nest = nest[key]
    return nest


def _nest(inputs: Any, values: dict[tuple[Any, ...], Any]) -> Any:
    from ..data import nest

    ready = iter([_tensor(values[path]) for path, _ in nest.paths(inputs)])
    return nest.transform(lambda _: next(ready), inputs)


def _is_plain_tuple(element: Any) -> bool:
    return isinstance(element, tuple) and not hasattr(element, "_fields")


def _tensor(value: Any) -> Any:
    """A value of a row; what is lent is copied, for a program may keep it."""
    import numpy as np
    import tensorflow as tf

    from ..columns import Ragged, Sparse, Strings
    from ..tensorflow import convert

    if isinstance(value, Strings | Ragged | Sparse):
        return convert(value)
    return tf.convert_to_tensor(value if isinstance(value, bytes) else np.array(value))


def _array(value: Any, spec: Any) -> Any:
    import tensorflow as tf

    return tf.convert_to_tensor(value, spec.dtype).numpy()


def _ranks(made: list[dict[str, Any]]) -> dict[str, int]:
    import numpy as np

    return {name: np.ndim(value) for name, value in made[0].items()} if made else {}


# A dataset's rows, for `program`.


def _rows(job: dict[str, Any], epoch: int) -> Iterator[dict[str, Any]]:
    step, dataset = _made(job["program"], job.get("words", ()), job["step"], job["at"], job.get("fills", False))
    leaves = _leaves(step)
    for _ in range(epoch):
        iter(dataset)  # a shuffle draws again for each iterator
    for element in dataset:
        yield {n: _array(_at(element, p), s) for n, (p, s) in zip(job["gives"], leaves, strict=True)}


def _write(job: dict[str, Any], spec: dict[str, Any]) -> None:
    from ..rows import RowWriter

    with RowWriter(spec) as writer:
        for row in _rows(job, writer.epoch):
            writer.write(**row)


def _try(job: dict[str, Any]) -> dict[str, Any]:
    """The results of a function or dataset, and how long a row takes."""
    import itertools

    if not job["is_source"]:
        step, _ = _made(job["program"], job.get("words", ()), job["step"], job["at"], False)
        if step.depth > 0:
            return {"ranks": {}, "seconds": None}
        function = Function(**{name: value for name, value in job.items() if name != "is_source"})
        return function.tried(itertools.islice(iter(step.inputs[0]), _TRIED))
    rows = _rows(job, 0)
    made = list(itertools.islice(rows, 1))  # the first one comes after the program has begun
    begin = time.perf_counter()
    made += itertools.islice(rows, _TRIED)
    return {"ranks": _ranks(made), "seconds": (time.perf_counter() - begin) / max(1, len(made) - 1)}


def _tried(job: dict[str, Any]) -> dict[str, Any]:
    try:
        return _try(job)
    except Exception as error:  # whatever the program raises
        return {"why": f"{type(error).__name__}: {error}"}


def main(words: list[str]) -> int:
    """Write rows, or try some jobs: the word is JSON."""
    given = json.loads(words[0])
    if isinstance(given, dict):
        spec = given.pop("spec")
        _write(given, spec)
        return 0
    with contextlib.redirect_stdout(sys.stderr):
        tried = [_tried(job) for job in given]
    print(json.dumps(tried))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
