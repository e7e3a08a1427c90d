"""Batches of a map-style data set, as a program's torch.DataLoader would make them, in the interpreters of a
server: `Batches` is the function of its stage `python`, and `torch_dataset.py` writes the pipeline.

The batches of an epoch are a file of the loader's folder (`Order`), and the server's source `numbers` tells
interpreters which of them to make.

A batch is a nest of values. Its signature and its leaves, which are columns, are found by flatten(); nest()
puts them together again. A batch that has another signature than the first one comes whole, pickled, in the
column "other": it is right, and slower.
"""

from __future__ import annotations

import collections
import contextlib
import copyreg
import importlib
import io
import os
import pickle
import sys
import types
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from . import described, worker
from .dtypes import numpy_dtype
from .worker_columns import Misfit, Stack

__all__ = ["Batches", "Tensor", "columns", "flatten", "load", "modules", "nest", "pickled", "save", "were_reloaded"]

OTHER, SHAPES = "other", "shapes"
WANTED_ALL = 2**63 - 1
_EPOCH = 2**40  # numbers of rows in an epoch
_OF_BATCHES = 1 << 62  # what collate_fn draws is not what the first row draws

# The number of a batch in the source's list: the server's epoch, then step by step one for each rank.
_RUN_SHIFT = 32

TEXTS = ("text", "texts")


class Tensor:
    """An array that the program gets as a tensor, where torch is not needed to make it."""

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = array


class Unfit(Exception):
    """A value that is not a column."""


# A nest in columns, and back.


def flatten(value: Any) -> tuple[Any, list[Any]]:
    """The signature, which says all but the values, and the leaves. Raises Unfit."""
    found: list[Any] = []
    return _signature(value, found), found


def _signature(value: Any, found: list[Any]) -> Any:
    kind = type(value)
    if kind in (dict, collections.OrderedDict):
        return (kind, tuple(value), tuple(_signature(item, found) for item in value.values()))
    if kind in (list, tuple) or (isinstance(value, tuple) and hasattr(value, "_fields")):
        for text in (str, bytes):
            if value and kind in (list, tuple) and all(type(item) is text for item in value):
                found.append(_encoded(value))
                return ("texts", kind, text)
        return (kind, None, tuple(_signature(item, found) for item in value))
    if value is None:
        return ("none",)
    return _leaf(value, kind, found)


_CONSTANTS = {int: np.int64, float: np.float64, bool: np.bool_}


def _leaf(value: Any, kind: type, found: list[Any]) -> Any:
    if kind in (str, bytes):
        found.append(_encoded([value]))
        return ("text", kind)
    try:
        if kind in _CONSTANTS:
            found.append(np.array([value], _CONSTANTS[kind]))
            return ("constant", kind)
        array, name = _array(value, kind)
        dtype = described.columns([array.arrays[0] if type(array) is Stack else array])["value"]["dtype"]
    except (TypeError, ValueError, RuntimeError, OverflowError, ImportError) as error:
        raise Unfit(str(error)) from None
    if dtype == "string":
        raise Unfit(f"an array of {array.dtype}")
    found.append(array)
    return (name, dtype)


def _encoded(texts: Sequence[str | bytes]) -> list[bytes]:
    """Each text as bytes that nest() makes the same text of, surrogates without their half as well."""
    return [text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text for text in texts]


def _array(value: Any, kind: type) -> tuple[Any, str]:
    if kind is Tensor:
        return value.array, "tensor"
    if kind is np.ndarray:
        return value, "array"
    torch = sys.modules.get("torch")
    if torch is None or kind is not torch.Tensor or value.layout is not torch.strided or value.requires_grad:
        raise Unfit(f"a value of type {kind.__name__}")
    return described.array(value), "tensor"


def columns(signature: Any) -> dict[str, dict[str, Any]]:
    """The stage's `output`. Arrays come flat, and their shapes in a column of all: of open dimensions the server
    would be told the size of each list."""
    made: dict[str, dict[str, Any]] = {}
    for kind, *facts in leaves(signature):
        dtype = "string" if kind in TEXTS else constant(facts[0]) if kind == "constant" else facts[0]
        made[str(len(made))] = {"dtype": dtype, "shape": [None]}
    made[SHAPES] = {"dtype": "int64", "shape": [None]}
    made[OTHER] = {"dtype": "uint8", "shape": [None]}
    return made


def leaves(signature: Any) -> Iterator[Any]:
    """The parts of a signature that are columns."""
    if signature is None or signature[0] == "none":
        return
    if isinstance(signature[0], type):
        for inner in signature[2]:
            yield from leaves(inner)
    else:
        yield signature


def constant(kind: type) -> str:
    """The dtype of a Python number."""
    return np.dtype(_CONSTANTS[kind]).name


def nest(signature: Any, leaves: Iterator[Any]) -> Any:
    """The nest of this signature, with these leaves in their shapes: tensors of its own, or lists of bytes."""
    kind = signature[0]
    if isinstance(kind, type):
        items = [nest(inner, leaves) for inner in signature[2]]
        if signature[1] is not None:
            return kind(zip(signature[1], items, strict=True))
        return kind(*items) if hasattr(kind, "_fields") else kind(items)
    if kind == "none":
        return None
    leaf = next(leaves)
    if kind in TEXTS:
        is_str = signature[-1] is str
        texts = [text.decode("utf-8", "surrogatepass") for text in leaf] if is_str else leaf
        return signature[1](texts if kind == "texts" else texts[0])
    if kind == "constant":
        return signature[1](leaf[0])
    return leaf.numpy() if kind == "array" else leaf


# torch's default collation.


def collate(batch: Sequence[Any]) -> Any:
    """The result of torch's default_collate, with Tensor for a tensor wherever that needs no torch."""
    first = batch[0]
    kind = type(first)
    if kind is np.ndarray and first.dtype.kind in "biuf" and first.dtype.isnative and all(type(item) is np.ndarray for item in batch):
        if all(item.shape == first.shape and item.dtype == first.dtype for item in batch):
            return Tensor(Stack(batch))
    if issubclass(kind, np.generic) and first.dtype.kind in "biuf" and all(type(item) is kind for item in batch):
        return Tensor(np.array(batch, first.dtype))
    if kind in _CONSTANTS and all(type(item) is kind for item in batch):
        try:
            return Tensor(np.array(batch, _CONSTANTS[kind]))
        except OverflowError:
            pass  # torch's own words
    if kind in (str, bytes):
        return batch
    if kind is dict and all(type(item) is dict and len(item) == len(first) for item in batch):
        return {key: collate([item[key] for item in batch]) for key in first}
    if isinstance(first, tuple) and all(isinstance(i, tuple) and len(i) == len(first) for i in batch):
        items = [collate(values) for values in zip(*batch, strict=True)]
        return kind(*items) if hasattr(first, "_fields") else items
    if kind is list and all(type(item) is list and len(item) == len(first) for item in batch):
        return [collate(values) for values in zip(*batch, strict=True)]
    from torch.utils.data import default_collate

    return default_collate(batch)  # type: ignore[arg-type]


def convert(item: Any) -> Any:
    """The result of torch's default_convert for an item, in the same way."""
    kind = type(item)
    if kind in (str, bytes, int, float, bool):
        return item
    if issubclass(kind, np.ndarray | np.generic) and kind.__module__ == "numpy" and item.dtype.kind in "biuf":
        return Tensor(np.asarray(item))
    if kind is dict:
        return {key: convert(value) for key, value in item.items()}
    if isinstance(item, tuple):
        items = [convert(value) for value in item]
        return kind(*items) if hasattr(item, "_fields") else items
    if kind is list:
        return [convert(value) for value in item]
    from torch.utils.data import default_convert

    converted: Any = default_convert(item)  # type: ignore[no-untyped-call]
    return converted


# The batches of an epoch, as a file that all interpreters map.


class Order(NamedTuple):
    """Those of the ranks of a node, step by step, in the order of their ranks."""

    seed: int
    epoch: int  # the loader's number
    size: int  # positions that the epoch has
    positions: Any  # of the first row of each batch
    ends: Any  # of its indices
    indices: Any
    objects: int  # the number of the data set's file


_HEAD = 5


def write_order(folder: str, run: int, order: Order) -> None:
    """Have the server go through it in its epoch `run`, which it begins when the list is there."""
    count = len(order.ends)
    head = np.array([order.seed, order.epoch, order.size, count, order.objects], np.int64)
    with open(os.path.join(folder, f"batches-{run}"), "wb") as file:
        for part in (head, order.positions, order.ends, order.indices):
            np.asarray(part, np.int64).tofile(file)
    new = os.path.join(folder, "order.new")
    with open(new, "wb") as file:
        np.save(file, (run << _RUN_SHIFT) + np.arange(count, dtype=np.int64))
    os.rename(new, os.path.join(folder, f"order-{run}.npy"))


def read_order(folder: str, run: int) -> Order:
    words = np.memmap(os.path.join(folder, f"batches-{run}"), np.int64, "r")
    seed, epoch, size, count, objects = words[:_HEAD].tolist()
    parts = [_HEAD, _HEAD + count, _HEAD + 2 * count]
    positions, ends, indices = np.split(words, parts)[1:]
    return Order(seed, epoch, size, positions, ends, indices, objects)


def remove_order(folder: str, run: int) -> None:
    for name in (f"order-{run}.npy", f"batches-{run}", f"drawn-{run}"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(folder, name))


# The data set as files, one more where it was changed between two epochs.


def latest(folder: str) -> int:
    """The number of the last one."""
    found = (name.partition("objects-")[2] for name in os.listdir(folder))
    return max(int(number) for number in found if number.isdigit())



class _Sum:
    """The number of bytes written, and their checksum."""

    def __init__(self) -> None:
        self.value = 0, 0

    def write(self, content: Any) -> int:
        size = memoryview(content).nbytes
        self.value = self.value[0] + size, zlib.crc32(content, self.value[1])
        return size


def save(path: str, value: Any) -> tuple[int, int]:
    """Write it, pickled, to a file. Returns its sum."""
    content, found = pickled(value), _Sum()
    with open(f"{path}.new", "wb") as file:
        file.write(content)
    os.rename(f"{path}.new", path)
    found.write(content)
    return found.value


def sum_of(value: Any) -> tuple[int, int] | None:
    """The sum that save() would return, which is another one where the value was changed. None: nobody can tell,
    as it cannot be pickled any more."""
    found = _Sum()
    try:
        _pickler(found).dump(value)
    except Exception:
        return None
    return found.value


def _pickler(to: Any) -> pickle.Pickler:
    """One that writes tensors as arrays: torch's own form is slower, and not made for all dtypes."""
    kind: type[pickle.Pickler] = (_by_value() or pickle).Pickler
    torch = sys.modules.get("torch")
    if torch is not None:
        table = getattr(kind, "dispatch_table", None)  # cloudpickle has one
        others: Any = table if isinstance(table, collections.ChainMap) else copyreg.dispatch_table
        reducers = collections.ChainMap({torch.Tensor: _reduced}, others)
        kind = type("Pickler", (kind,), {"dispatch_table": reducers})
    return kind(to, protocol=5)


def _reduced(tensor: Any) -> Any:
    try:
        return _tensor, (tensor.resolve_conj().resolve_neg().numpy(),)
    except (RuntimeError, TypeError):  # it is sparse, of a GPU, wants a gradient, or numpy has no such dtype
        return tensor.__reduce_ex__(5)


def _tensor(array: Any) -> Any:
    import torch

    return torch.from_numpy(array)


def pickled(value: Any, function: str = "") -> bytes:
    """By name what can be imported, and by value what cannot. function: the name of a function, not of a data set.
    Raises ArgumentError."""
    from .errors import ArgumentError

    cloudpickle, to = _by_value(), io.BytesIO()
    try:
        _pickler(to).dump(value)
    except Exception as error:
        remedy = "" if cloudpickle else "; pip install cloudpickle sends functions and classes by value"
        what = function or "the data set"
        where = "inside of it" if function else "in its __getitem__, or in worker_init_fn"
        raise ArgumentError(
            f"{what} cannot be sent to the server's interpreters: {error}: open files and connections, and make "
            f"locks, {where}{remedy}"
        ) from error
    content = to.getvalue()
    if cloudpickle is None and b"__main__" in content:
        what = function or "the data set's class, or a function of its DataLoader,"
        raise ArgumentError(
            f"{what} is of this script or notebook, which interpreters "
            "cannot import: pip install cloudpickle, or put it into a module"
        )
    return content


def _by_value() -> Any:
    try:
        return importlib.import_module("cloudpickle")
    except ImportError:
        return None


def load(path: str) -> Any:
    with open(path, "rb") as file:
        return pickle.load(file)


def modules() -> dict[str, Any]:
    """The program's modules as they are now."""
    found = [(name, module) for name, module in sys.modules.copy().items() if type(module) is types.ModuleType]
    return {name: module.__spec__ for name, module in found if module.__spec__ is not None}


def were_reloaded(before: Mapping[str, Any]) -> bool:
    """Whether the program has imported one of these modules again since, as a notebook does where it was edited:
    then interpreters have the code of before."""
    now = modules()
    return any(now.get(name, spec) is not spec for name, spec in before.items())


# Interpreters call these.


class Batches:
    """Makes the batch of some indices."""

    def __init__(self, folder: str) -> None:
        job = load(os.path.join(folder, "loader"))
        self._signature: Any = job["signature"]
        self._columns = columns(self._signature)
        self._folder = folder
        self._stride: int = job["stride"]
        self._is_single: bool = job["is_single"]
        self._takes_lists: bool = job["takes_lists"]
        self._cuts = np.memmap(os.path.join(folder, "cuts"), np.int64, "r")
        self._orders: dict[int, Order] = {}  # of the last epochs
        self._seed = 0  # of the epoch
        self._draws = worker.current_draws()
        self._seeds_rows = False
        self._has_made = False
        self._info: Any = None
        self._workers: int = job["workers"]
        self._worker_seed: int = job["seed"]
        self._number: int | None = None  # of the interpreter that makes batches
        self._load(latest(folder))
        if not worker.is_forked():
            self.tundish_forked()

    def tundish_forked(self) -> None:
        """Begin, in the interpreter that makes batches."""
        self._number = _number(self._folder)
        self._tell_worker()

    def _load(self, objects: int) -> None:
        """The data set, as it was when this number was given."""
        self._dataset, self._collate, self._begin = load(os.path.join(self._folder, f"objects-{objects}"))
        self._objects = objects
        self._fetch: Any = getattr(self._dataset, "__getitems__", None)
        if self._number is not None:
            self._tell_worker()

    def _tell_worker(self) -> None:
        """As torch's workers: with num_workers=0 there is none to be told."""
        number, torch_worker = self._number, sys.modules.get("torch.utils.data._utils.worker")
        if self._workers == 0 or number is None:
            return
        if torch_worker is not None:
            self._info = torch_worker.WorkerInfo(
                id=number, num_workers=self._workers, seed=self._worker_seed + number, dataset=self._dataset
            )
        self._inform(self._info)
        if self._begin is not None:
            self._begin(number)
        self._inform(None)

    def _inform(self, info: Any) -> None:
        """The result of torch.utils.data.get_worker_info(); its own collation would take shared memory then."""
        if self._info is not None:
            sys.modules["torch.utils.data._utils.worker"]._worker_info = info  # type: ignore[attr-defined]

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        word = int(row["value"][0])
        run, number = word >> _RUN_SHIFT, word & ((1 << _RUN_SHIFT) - 1)
        step, rank = divmod(number, len(self._cuts))
        cut = int(self._cuts[rank])
        if run == cut >> _RUN_SHIFT and step >= cut & ((1 << _RUN_SHIFT) - 1):
            return self._empty()
        try:
            order = self._order(run)
            if order.objects != self._objects:
                self._load(order.objects)
        except FileNotFoundError:  # all ranks have gone on to a later epoch
            return self._empty()
        first = int(order.positions[number])
        begin, stride, count = order.epoch * _EPOCH, self._stride, order.size

        def place_of(number: int) -> int:
            return int(begin + (first + number * stride) % count)

        indices = order.indices[order.ends[number - 1] if number > 0 else 0 : order.ends[number]].tolist()
        self._seed = order.seed
        return self._answer(self.made(indices, place_of))

    def _order(self, run: int) -> Order:
        if run not in self._orders:
            latest = list(self._orders.items())[-1:]
            self._orders = {**dict(latest), run: read_order(self._folder, run)}
        return self._orders[run]

    def _empty(self) -> dict[str, Any]:
        return {
            name: [] if column["dtype"] == "string" else np.zeros(0, numpy_dtype(column["dtype"]))
            for name, column in self._columns.items()
        }

    def _answer(self, made: Any) -> dict[str, Any]:
        answer = self._empty()
        try:
            signature, leaves = flatten(made)
        except Unfit:
            signature = None
        if signature is None or signature != self._signature:
            answer[OTHER] = np.frombuffer(pickled_plain(made), np.uint8)
        else:
            shapes: list[int] = []
            for number, leaf in enumerate(leaves):
                if not isinstance(leaf, list):
                    shapes += leaf.ndim, *leaf.shape
                    leaf = leaf.as_one_dimension() if type(leaf) is Stack else leaf.reshape(-1)
                answer[str(number)] = leaf
            answer[SHAPES] = np.array(shapes, np.int64)
        return answer

    def made(self, indices: list[int], place_of: Callable[[int], int]) -> Any:
        """The batch. An item's draws depend on its place, which numbers the rows of all epochs."""
        self._inform(self._info)
        try:
            items = self._items(indices, place_of)
        finally:
            self._inform(None)
        self._draws.begin(self._seed, _OF_BATCHES + place_of(0))
        made = self._collate(items[0] if self._is_single else items)
        if not self._has_made:
            self._has_made = True
            worker.use_one_thread()  # of what was imported only now
        return made

    def _items(self, indices: list[int], place_of: Callable[[int], int]) -> Sequence[Any]:
        if self._takes_lists:
            self._draws.begin(self._seed, place_of(0))
            return [self._dataset[indices]]
        if self._fetch is not None and not self._is_single:
            self._draws.begin(self._seed, place_of(0))
            items: Sequence[Any] = self._fetch(indices)
            return items
        if not self._seeds_rows:
            # Seeding takes longer than making a small item, and most draw nothing.
            self._draws.begin(self._seed, place_of(0))
            before = self._draws.state()
            items = self._each(indices, None)
            if self._draws.state() == before:
                return items
            self._seeds_rows = True
        return self._each(indices, place_of)

    def _each(self, indices: list[int], place_of: Callable[[int], int] | None) -> list[Any]:
        dataset, made = self._dataset, []
        for number, index in enumerate(indices):
            if place_of is not None:
                self._draws.begin(self._seed, place_of(number))
            try:
                made.append(dataset[index])
            except Exception as error:
                text = f"item {index}: {type(error).__name__}: {error}"
                raise Misfit(text).with_traceback(error.__traceback__) from None
        return made


def pickled_plain(made: Any) -> bytes:
    """A batch without columns, with tensors for Tensors."""
    to = io.BytesIO()
    _pickler(to).dump(_plain(made))
    return to.getvalue()


def _plain(value: Any) -> Any:
    """With tensors for Tensors."""
    if type(value) is Tensor:
        import torch

        return torch.from_numpy(np.stack(value.array.arrays) if type(value.array) is Stack else value.array)
    if type(value) is dict:
        return {key: _plain(item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_plain(item) for item in value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_plain(item) for item in value))
    return value


def _number(folder: str) -> int:
    """A number of this interpreter, which no other of this loader has had."""
    number = 0
    while True:
        try:
            os.close(os.open(os.path.join(folder, f"interpreter-{number}"), os.O_CREAT | os.O_EXCL, 0o600))
            return number
        except FileExistsError:
            number += 1
