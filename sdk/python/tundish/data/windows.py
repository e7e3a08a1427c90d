"""Datasets of windows, which become batches before they leave."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import nest
from .dataset import Dataset
from .graph import Column, Field, Name, Node, Origin, Spec, Unsupported, caller
from .lowering import record
from .trace import Traced, trace

__all__ = ["batched_windows", "bucketed", "grouped", "windowed"]

BATCHING = ("batch", "padded_batch", "ragged_batch")
REMEDY = "make one batch of each window: window.batch(size)"


def windowed(dataset: Dataset, params: dict[str, Any], origin: Origin | None) -> Dataset:
    """Dataset.window: in place of each component a dataset."""
    made = origin or caller()
    parts = nest.transform(
        lambda leaf: Dataset(Node("window_part", {}, (), leaf, made)), dataset.node.structure
    )
    return Dataset(Node("windows", params, (dataset.node,), parts, made))


def batched_windows(dataset: Dataset, result: Dataset, origin: Origin) -> Dataset:
    """Dataset.flat_map after Dataset.window: each window is an element."""
    windows = dataset.node
    params = dict(windows.params)
    batches = result.node.inputs if result.node.stage == "zip" else (result.node,)
    refused: list[Unsupported] = []
    wanted = [leaf.node.structure.name for leaf in nest.flatten(windows.structure)]
    found = [_part_of(batch) for batch in batches]
    if [name for name in found if name is not None] != wanted or len(found) != len(wanted):
        refused.append(Unsupported(origin, "window", "its windows are not batched one by one", REMEDY))
    for batch in batches:
        size, drops = batch.params.get("batch_size"), batch.params.get("drop_remainder", False)
        if batch.stage == "batch" and drops and size == params["size"]:
            params["drop_remainder"] = True
        elif (
            not isinstance(size, int)
            or not isinstance(params["size"], int)
            or size < params["size"]
            or drops
        ):
            refused.append(Unsupported(origin, "window", "a window does not become one batch", REMEDY))
    facts = {"unsupported": refused}
    return Dataset(Node("window", params, windows.inputs, result.node.structure, origin, facts))


def _part_of(batch: Node) -> Name | None:
    """The component whose window a batch is."""
    if batch.stage != "batch" or len(batch.inputs) != 1 or batch.inputs[0].stage != "window_part":
        return None
    name: Name = batch.inputs[0].structure.name
    return name


def grouped(
    dataset: Dataset,
    key_func: Callable[..., Any],
    reduce_func: Callable[..., Any],
    window_size: Any,
    window_size_func: Callable[..., Any] | None,
    origin: Origin,
) -> Dataset:
    """Dataset.group_by_window."""
    if (window_size is None) == (window_size_func is None):
        raise ValueError("group_by_window takes either window_size or window_size_func")
    key = Field(Name("key"), Spec("int64", ()))
    traced = trace(key_func, dataset.node.structure)
    window = Dataset(Node("window_part", {}, (), dataset.node.structure, origin))
    batch = trace(lambda key: reduce_func(key, window), key).result
    params: dict[str, Any] = {}
    facts: dict[str, Any] = {"key": traced.result, "scope": traced.scope}
    if window_size is not None:
        params["window_size"] = window_size
    else:
        assert window_size_func is not None
        sized = trace(window_size_func, key)
        facts.update(size=sized.result, size_scope=sized.scope, size_key=key)
    if _is_parted(batch, window, window_size):
        return _parted(dataset, Node("group_by_window", params, (dataset.node,), None, origin, facts), batch.node)
    facts["unsupported"] = _reduced(batch, window, window_size, params, origin)
    structure = batch.node.structure if isinstance(batch, Dataset) else dataset.node.structure
    return Dataset(Node("group_by_window", params, (dataset.node,), structure, origin, facts))


def _is_parted(batch: Any, window: Dataset, window_size: Any) -> bool:
    """Whether a window becomes batches of a size of their own."""
    node = batch.node if isinstance(batch, Dataset) else None
    if node is None or node.stage != "batch" or node.inputs != (window.node,):
        return False
    is_dense = all(leaf.spec.kind == "dense" for leaf in nest.flatten(window.node.structure))
    return is_dense and not _is_whole(node.params, window_size)


def _parted(dataset: Dataset, grouping: Node, batch: Node) -> Dataset:
    """Each window as a whole, and then its batches."""
    names = nest.flatten(dataset.node.structure)
    grouping.structure = nest.transform(
        lambda leaf: Field(leaf.name, Spec(leaf.spec.dtype, None if leaf.spec.shape is None else (None, *leaf.spec.shape))),
        dataset.node.structure,
    )

    def apart(*columns: Any) -> Dataset:
        values = columns if isinstance(dataset.node.structure, tuple) else columns[0]
        fields = iter(names)
        structure = nest.transform(lambda _: next(fields), values)
        rows = Node("from_tensor_slices", {}, (), structure, grouping.origin, {"values": values})
        return Dataset(rows).batch(**batch.params, origin=grouping.origin)

    return Dataset(grouping).flat_map(apart, origin=grouping.origin)


def _is_whole(params: dict[str, Any], window_size: Any) -> bool:
    """Whether a window is one batch."""
    size = params["batch_size"]
    if not isinstance(size, int) or not isinstance(window_size, int | None):
        return size is window_size
    if size == window_size:
        return True
    if params.get("drop_remainder"):
        return False
    return size >= 2**31 - 1 if window_size is None else size > window_size


def _reduced(
    batch: Any, window: Dataset, window_size: Any, params: dict[str, Any], origin: Origin
) -> list[Unsupported]:
    """The parameters of what a window becomes."""
    node = batch.node if isinstance(batch, Dataset) else None
    if node is None or node.stage not in BATCHING or node.inputs != (window.node,):
        why = "reduce_func does more than one batch, padded_batch or ragged_batch"
        return [Unsupported(origin, "group_by_window", why, "do the rest after it")]
    own = dict(node.params)
    own.pop("batch_size")
    if node.stage != "batch":
        params["reduce"] = node.stage
    params.update(own)
    if not _is_whole(node.params, window_size):
        why = "a window does not become one batch"
        return [Unsupported(origin, "group_by_window", why, "batch by window_size")]
    return []


def bucketed(
    dataset: Dataset, element_length_func: Callable[..., Any], params: dict[str, Any], origin: Origin
) -> Dataset:
    """Dataset.bucket_by_sequence_length."""
    traced = trace(element_length_func, dataset.node.structure)
    column = _measured(traced.result)
    if column is not None and column.field is not None:
        return _in_buckets(dataset, column.field.name, params, origin, [])
    if not isinstance(traced.result, Column) or traced.result.spec.rank not in (0, None):
        why = "the length is not that of a column"
        refused = [Unsupported(origin, "bucket_by_sequence_length", why, "return tf.shape(x)[0]")]
        return _in_buckets(dataset, "value", params, origin, refused)

    length = record("tf.cast", (traced.result, "int64"), {})
    pairs = dataset.mapped(Traced(traced.inputs, (traced.inputs, {"length": length}), traced.names, traced.scope), origin)
    buckets = _in_buckets(pairs, pairs.node.structure[1]["length"].name, params, origin, [])
    return buckets.map(lambda element, length: element, origin=origin)


def _in_buckets(
    dataset: Dataset, column: Any, params: dict[str, Any], origin: Origin, refused: list[Unsupported]
) -> Dataset:
    """column: whose dimension 0 is the length, or which is the length."""

    def change(spec: Spec) -> Spec:
        return Spec(
            spec.dtype, None if spec.shape is None else (None, *(None for _ in spec.shape)), spec.kind
        )

    structure = nest.transform(lambda leaf: Field(leaf.name, change(leaf.spec)), dataset.node.structure)
    params, facts = {"column": column, **params}, {"unsupported": refused}
    return Dataset(Node("bucket_by_sequence_length", params, (dataset.node,), structure, origin, facts))


def _measured(value: Any) -> Column | None:
    """The column whose dimension 0 a value is: tf.shape(x)[0], or tf.size of a vector."""
    while isinstance(value, Column) and value.call is not None and value.call.name == "tf.cast":
        value = value.call.args[0]
    if not isinstance(value, Column) or value.call is None:
        return None
    call = value.call
    arguments = (*call.args, *call.kwargs.values())
    if call.name == "tf.size" and isinstance(arguments[0], Column) and arguments[0].spec.rank == 1:
        return arguments[0]
    if call.name == "tf.strided_slice" and arguments[1] == 0 and isinstance(arguments[0], Column):
        shape = arguments[0].call
        if shape is not None and shape.name == "tf.shape":
            return next(
                (each for each in (*shape.args, *shape.kwargs.values()) if isinstance(each, Column)),
                None,
            )
    return None
