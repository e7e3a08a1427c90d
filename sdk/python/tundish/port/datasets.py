"""tf.data's constructors and methods note what the user's program asked of them."""

from __future__ import annotations

import contextlib
import functools
import inspect
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import tensorflow as tf
from tensorflow.python.data.ops import dataset_ops
from tensorflow.python.eager import context

from . import origin, tracing
from .calls import Traced, leaves
from .context import plain
from .proxy import has_proxy, real

_local = threading.local()

METHODS = (
    "batch", "bucket_by_sequence_length", "cache", "concatenate", "enumerate", "filter", "flat_map",
    "group_by_window", "ignore_errors", "interleave", "map", "padded_batch", "prefetch", "ragged_batch",
    "rebatch", "rejection_resample", "repeat", "scan", "shard", "shuffle", "skip", "snapshot", "sparse_batch",
    "take", "take_while", "unbatch", "unique", "window", "with_options",
)  # fmt: skip
CONSTRUCTORS = (
    "choose_from_datasets", "counter", "from_generator", "from_tensor_slices", "from_tensors", "list_files",
    "load", "random", "range", "sample_from_datasets", "zip",
)  # fmt: skip
READERS = {
    "TFRecordDataset": tf.data.TFRecordDataset,
    "TextLineDataset": tf.data.TextLineDataset,
    "FixedLengthRecordDataset": tf.data.FixedLengthRecordDataset,
    "CsvDataset": tf.data.experimental.CsvDataset,
    "SqlDataset": tf.data.experimental.SqlDataset,
}
# By method: the parameters that are functions of an element, or of a key.
FUNCTIONS = {
    "map": ("map_func",), "flat_map": ("map_func",), "interleave": ("map_func",), "filter": ("predicate",),
    "take_while": ("predicate",), "scan": ("scan_func",), "bucket_by_sequence_length": ("element_length_func",),
    "group_by_window": ("key_func", "reduce_func", "window_size_func"),
    "rejection_resample": ("class_func",), "snapshot": ("shard_func", "reader_func"),
}  # fmt: skip


@dataclass(eq=False)
class Step:
    """One dataset: how the program made it.

    `arguments` are those that were given, by the names of tf.data's parameters; a function of the user is
    there as Traced. `draw`: of a stage without a seed the number of the seed that it drew from the
    program's (tf.random.set_seed), else None. `filled`: the seed that it was given for a comparison.
    `iterations`: how many iterators were made that go through it; a shuffle draws again for each.
    """

    name: str
    inputs: tuple[Any, ...]
    arguments: dict[str, Any]
    origin: origin.Origin
    draw: int | None = None
    filled: int | None = None
    iterations: int = 0
    depth: int = 0
    element: Any = None  # tf.data's element_spec
    number: int = 0  # among those that the program has made: the same in each run of it


made_steps: list[tuple[Step, Any]] = []  # by this run of the program, and the dataset


def _owner() -> Any:
    """The owner of the program's random numbers."""
    return context.context()


class Draws:
    """How many seeds the program's own generator gave: each unseeded operation takes one."""

    seed: int | None = None
    count = 0
    fills = False
    filled = 0

    @classmethod
    def begin(cls, fills: bool) -> None:
        """A program begins. fills: stages that would be random get a seed."""
        _owner()._set_global_seed(None)
        cls.fills, cls.filled = fills, 0
        made_steps.clear()

    @classmethod
    def state(cls) -> Any:
        """Where the program's own generator stands."""
        owner = _owner()
        return cls.seed, cls.count, cls.filled, owner._seed, owner._rng and owner._rng.getstate()

    @classmethod
    def go_back(cls, state: Any) -> None:
        """Stand where it stood."""
        owner = _owner()
        cls.seed, cls.count, cls.filled, owner._seed, drawn = state
        if drawn is not None:
            owner._rng.setstate(drawn)

    @classmethod
    def patch(cls) -> None:
        owner = type(_owner())
        own, own_set = owner._internal_operation_seed, owner._set_global_seed

        def drawn(self: Any) -> Any:
            cls.count += 1
            return own(self)

        def set_seed(self: Any, seed: Any) -> None:
            cls.seed, cls.count = seed, 0
            own_set(self, seed)

        owner._internal_operation_seed = drawn
        owner._set_global_seed = set_seed


def patch() -> None:
    cls = dataset_ops.DatasetV2
    for name in METHODS:
        setattr(cls, name, _noting(name, getattr(cls, name)))
    for name in CONSTRUCTORS:
        setattr(cls, name, staticmethod(_noting(name, getattr(cls, name))))
    for name, reader in READERS.items():
        reader.__init__ = _noting(name, reader.__init__)
    cls.__init__ = _placing(cls.__init__)
    cls.__iter__ = _counting(cls.__iter__)
    for name in ("reduce", "get_single_element", "save"):
        setattr(cls, name, _reading(name, getattr(cls, name)))
    Draws.patch()


def _placing(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        self._tundish_origin = origin.here()
        function(self, *args, **kwargs)

    return init


def origin_of(dataset: Any) -> origin.Origin:
    """The line that made it, also where it was not seen how."""
    found: origin.Origin = vars(dataset)["_tundish_origin"]
    return found


def _counting(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def iterate(self: Any) -> Any:
        for step in steps_of(self):
            step.iterations += 1
        return function(self)

    return iterate


def _reading(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A method that reads the dataset in TensorFlow itself; in a function of an element it gives a tensor."""

    @functools.wraps(function)
    def read(self: Any, *args: Any, **kwargs: Any) -> Any:
        trace = tracing.current()
        if trace is None or trace.busy:
            for step in steps_of(self):
                step.iterations += 1
            return function(self, *args, **kwargs)
        where = origin.here()
        with trace.accounting(), unseen():
            result = function(self, *real(args), **real(kwargs))
        single = name == "get_single_element"
        remedy = "use flat_map, and return the dataset" if single else "batch the window, and use functions of tf.* on the batch"
        trace.problem(f"Dataset.{name}", "inside of a function it gives a tensor, for which there is no stage",
                      remedy, where)  # fmt: skip
        return trace.record(f"Dataset.{name}", (), {}, where, result)

    return read


def steps_of(dataset: Any) -> list[Step]:
    """All steps of a dataset, each once, the first ones first."""
    found: dict[int, Step] = {}
    _gather(dataset, found)
    return list(found.values())


def _gather(dataset: Any, found: dict[int, Step]) -> None:
    step = step_of(dataset)
    if step is None or id(step) in found:
        return
    for part in step.inputs:
        _gather(part, found)
    for value in step.arguments.values():
        nested = value.result if isinstance(value, Traced) else value
        for _, leaf in leaves(nested):
            if isinstance(leaf, tf.data.Dataset):
                _gather(leaf, found)
    found[id(step)] = step


def step_of(dataset: Any) -> Step | None:
    """How a dataset was made; None if it was not seen."""
    while dataset is not None:
        step = vars(dataset).get("_tundish_step") if hasattr(dataset, "__dict__") else None
        if isinstance(step, Step):
            return step
        dataset = vars(dataset).get("_dataset")  # version 1 puts a dataset around another
    return None


def _noting(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which notes what dataset it gives when the user's program calls it."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def noting(*args: Any, **kwargs: Any) -> Any:
        if getattr(_local, "inside", False):  # tf.data itself calls
            return function(*args, **kwargs)
        where = origin.here()
        bound = signature.bind(*args, **kwargs)
        asked = _asked(name, bound)
        for parameter in FUNCTIONS.get(name, ()):
            if callable(bound.arguments.get(parameter)):
                asked[parameter] = Traced(where)
                run = tracing.trace(bound.arguments[parameter], asked[parameter])
                bound.arguments[parameter] = _outside(run)
        filled = _fill(name, bound)
        before = Draws.count
        made = _inside(function, bound)
        if made is not None and "_tundish_step" in vars(made):
            return made  # one of its arguments as it is
        owner = asked.pop("self", None)
        dataset = owner if made is None else made
        inputs = () if made is None or owner is None else (owner,)
        drew = before if Draws.count > before else None
        trace = tracing.current()
        depth = 0 if trace is None else trace.depth
        step = Step(name, inputs, asked, where, drew, filled, depth=depth)
        step.element, step.number = dataset.element_spec, len(made_steps)
        made_steps.append((step, dataset))
        dataset._tundish_step = step
        return made

    return noting


def _fill(name: str, bound: inspect.BoundArguments) -> int | None:
    """Give a stage a seed that would be random, if that is wanted."""
    asked = bound.arguments
    draws = name in ("shuffle", "sample_from_datasets") or name == "list_files" and asked.get("shuffle") is not False
    if not (Draws.fills and draws and asked.get("seed") is None and Draws.seed is None):
        return None
    Draws.filled += 1
    asked["seed"] = Draws.filled
    return Draws.filled


def _asked(name: str, bound: inspect.BoundArguments) -> dict[str, Any]:
    asked = dict(bound.arguments)
    asked |= asked.pop("kwargs", {})
    if name in ("from_tensors", "from_tensor_slices"):
        trace = tracing.current()
        with contextlib.nullcontext() if trace is None else trace.accounting():
            asked["tensors"] = _normal(asked["tensors"])
    return {key: _kept(value) for key, value in asked.items()}


def _normal(nest: Any) -> Any:
    """Lists, and the frames and series of pandas, as the tensors that tf.data makes of them; proxies as they
    are."""
    if isinstance(nest, Mapping):
        return {key: _normal(value) for key, value in nest.items()}
    if isinstance(nest, tuple):
        return tuple(map(_normal, nest)) if not hasattr(nest, "_fields") else type(nest)(*map(_normal, nest))
    if has_proxy(nest) or isinstance(nest, (tf.RaggedTensor, tf.SparseTensor, tf.data.Dataset)):
        return nest
    with tf.init_scope():
        if not tf.is_symbolic_tensor(nest):
            return tf.convert_to_tensor(nest).numpy()
    return nest


def _inside(function: Callable[..., Any], bound: inspect.BoundArguments) -> Any:
    for name, value in bound.arguments.items():
        if not isinstance(value, tf.data.Dataset):
            bound.arguments[name] = plain(real(value))
    trace = tracing.current()
    _local.inside = True
    try:
        with contextlib.nullcontext() if trace is None else trace.accounting():
            return function(*bound.args, **bound.kwargs)
    finally:
        _local.inside = False


@contextlib.contextmanager
def unseen() -> Iterator[None]:
    """Objects that are made meanwhile are not noted."""
    before = getattr(_local, "inside", False)
    _local.inside = True
    try:
        yield
    finally:
        _local.inside = before


def _outside(function: Callable[..., Any]) -> Callable[..., Any]:
    """The user's function is the user's again, also when tf.data calls it."""

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        _local.inside = False
        try:
            return function(*args, **kwargs)
        finally:
            _local.inside = True

    unconverted: Callable[..., Any] = tf.autograph.experimental.do_not_convert(run)
    return unconverted


def _kept(value: Any) -> Any:
    """An argument as the record keeps it."""
    if isinstance(value, (tf.data.Dataset, Traced, tf.data.Options)):
        return value
    return tracing.argument(value)

