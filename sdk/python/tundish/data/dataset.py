"""tf.data's Dataset as a builder: each call adds a node, nothing runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import nest
from .absent import ABSENT
from .dtypes import DType, Typed, as_dtype, as_text
from .graph import Column, Field, Name, Node, Origin, Spec, Unsupported, caller
from .lowering import constant_spec, record
from .lowering.schedule import base_name
from .trace import AbsentError, Traced, fields_of, trace

__all__ = ["AUTOTUNE", "SHARD_HINT", "Dataset"]

AUTOTUNE = -1
SHARD_HINT = -1


def _absent(name: str) -> Exception:
    """For a method that there is not."""
    if name in ABSENT:
        return AbsentError(
            [Unsupported(caller(), f"Dataset.{name}", "there is no stage for it", ABSENT[name])]
        )
    return AttributeError(f"tundish.data.Dataset has no {name!r}")


class _Methods(type):
    """So that class methods of tf.data that are absent say so, too."""

    def __getattr__(cls, name: str) -> Any:
        raise _absent(name)


class _ByHand:
    """Dataset.stage(name, **parameters): a stage as the pipeline file has it, as `tundish help NAME` tells.

        ds = TextLineDataset("rows.jsonl").stage("decode_json", features={"a": {"type": "FixedLen", ...}})
        ds = Dataset.stage("program", command=["./rows"], ...)   # a source

    Parameters are the file's: expressions are texts, columns are named, "$name" is the outer dataset's column.
    The server tells which columns there are after it, which is why it is asked at once.
    """

    def __get__(self, dataset: Dataset | None, owner: Any = None) -> Callable[..., Dataset]:
        def stage(name: str, /, **parameters: Any) -> Dataset:
            from .by_hand import by_hand

            return by_hand(dataset, name, parameters)

        stage.__doc__ = self.__doc__
        return stage


class Dataset(metaclass=_Methods):
    """Elements, to be read by a Tundish server: tf.data.Dataset's methods, arguments and defaults.

        ds = Dataset.list_files("train-*.tfrecord", seed=1)
        ds = ds.interleave(TFRecordDataset, cycle_length=4).shuffle(10000, seed=7).map(parse).batch(256)
        print(ds.yaml())

    `num_parallel_calls`, `deterministic` and `name` are taken and change nothing. A function given to a
    method runs once, with columns in place of values (tundish.data.Column).
    """

    def __init__(self, node: Node) -> None:
        self.node = node

    @property
    def element_spec(self) -> Any:
        """The nest of the components' specs."""
        return nest.transform(
            lambda leaf: leaf.spec if isinstance(leaf, Field) else leaf, self.node.structure
        )

    # Sources.

    @classmethod
    def range(
        cls,
        *args: Any,
        output_type: Any = "int64",
        name: str | None = None,
        origin: Origin | None = None,
    ) -> Dataset:
        """start, stop and step, as Python's range takes them."""
        if not 1 <= len(args) <= 3:
            raise TypeError("Dataset.range takes [start,] stop[, step]")
        start, stop, step = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
        params = {"start": start, "stop": stop, "step": step}
        for bound, default in (("start", 0), ("step", 1)):
            if isinstance(params[bound], int) and params[bound] == default:
                del params[bound]
        if as_dtype(output_type) != "int64":
            params["output_type"] = as_dtype(output_type)
        return cls._source("range", params, Spec(as_dtype(output_type), ()), origin)

    @classmethod
    def counter(
        cls,
        start: int = 0,
        step: int = 1,
        dtype: Any = "int64",
        name: str | None = None,
        origin: Origin | None = None,
    ) -> Dataset:
        """start, start + step and so on, to the last number of the dtype."""
        known = DType(as_dtype(dtype))
        last = known.max if step > 0 else known.min
        return cls.range(start, last, step, output_type=dtype, origin=origin or caller())

    @classmethod
    def from_tensors(
        cls, tensors: Any, name: str | None = None, origin: Origin | None = None
    ) -> Dataset:
        """One element: the tensors."""
        return cls._tensors("from_tensors", tensors, 0, origin)

    @classmethod
    def from_tensor_slices(
        cls, tensors: Any, name: str | None = None, origin: Origin | None = None
    ) -> Dataset:
        """An element for each index of the tensors' first dimension."""
        return cls._tensors("from_tensor_slices", tensors, 1, origin)

    @classmethod
    def _tensors(cls, stage: str, tensors: Any, drops: int, origin: Origin | None) -> Dataset:
        tensors = _as_arrays(tensors)
        used: list[str] = []

        def field(path: tuple[Any, ...], value: Any) -> Field:
            keys = [str(key) for key in path if isinstance(key, str)]
            text = keys[-1] if keys else "value" if not path else "_".join(["value", *map(str, path)])
            while text in used:
                text += "_"
            used.append(text)
            spec = constant_spec(value)
            shape = None if spec.shape is None else spec.shape[drops:]
            return Field(Name(text, bool(keys)), Spec(spec.dtype, shape))

        fields = iter([field(path, value) for path, value in nest.paths(tensors)])
        structure = nest.transform(lambda _: next(fields), tensors)
        return cls(Node(stage, {}, (), structure, origin or caller(), {"values": tensors}))

    @classmethod
    def list_files(
        cls,
        file_pattern: Any,
        shuffle: bool | None = None,
        seed: int | None = None,
        name: str | None = None,
        origin: Origin | None = None,
    ) -> Dataset:
        """The paths of all files that match a pattern, or one of a list of them."""
        params = {"file_pattern": file_pattern}
        if shuffle is not None and not shuffle:
            params["shuffle"] = False
        if seed is not None:
            params["seed"] = seed
        return cls._source("list_files", params, Spec("string", ()), origin)

    @classmethod
    def from_generator(
        cls,
        generator: Any,
        output_types: Any = None,
        output_shapes: Any = None,
        args: Any = None,
        output_signature: Any = None,
        name: str | None = None,
        origin: Origin | None = None,
    ) -> Dataset:
        """The elements of a generator function, in a process of its own, which runs it again for each epoch and after
        a resume. generator: the function, or its name as "data:rows". output_signature: a nest of
        tundish.data.TensorSpec."""
        if output_signature is None or output_types is not None or output_shapes is not None:
            raise TypeError("from_generator takes output_signature, a nest of tundish.data.TensorSpec(shape, dtype)")
        from .python import generated

        return cls(generated(generator, args, output_signature, origin or caller()))

    @classmethod
    def from_indexable(cls, source: Any, name: str | None = None, origin: Origin | None = None) -> Dataset:
        """The items of what has __len__ and __getitem__, as PyTorch's map-style data sets and Grain's sources, by
        their numbers: made in the server's interpreters when they are delivered. It is pickled."""
        from .python import indexed

        return cls(indexed(source, origin or caller()))

    @classmethod
    def _source(cls, stage: str, params: dict[str, Any], spec: Spec, origin: Origin | None) -> Dataset:
        return cls(Node(stage, params, (), Field(Name("value", False), spec), origin or caller()))

    # Which element comes next.

    def _then(
        self,
        stage: str,
        params: Mapping[str, Any],
        origin: Origin | None,
        change: Callable[[Spec], Spec] | None = None,
    ) -> Dataset:
        """The dataset after one more stage, whose elements have the same components."""
        structure = self.node.structure
        if change is not None:
            structure = nest.transform(
                lambda leaf: Field(leaf.name, change(leaf.spec)) if isinstance(leaf, Field) else leaf,
                structure,
            )
        return Dataset(Node(stage, dict(params), (self.node,), structure, origin or caller()))

    def shuffle(
        self,
        buffer_size: Any,
        seed: int | None = None,
        reshuffle_each_iteration: bool | None = True,
        name: str | None = None,
        origin: Origin | None = None,
    ) -> Dataset:
        """The elements in random order, drawn from a full buffer."""
        params = {"buffer_size": buffer_size}
        if seed is not None:
            params["seed"] = seed
        if reshuffle_each_iteration is not None and not reshuffle_each_iteration:
            params["reshuffle_each_iteration"] = False
        return self._then("shuffle", params, origin)

    def repeat(
        self, count: Any = None, name: str | None = None, origin: Origin | None = None
    ) -> Dataset:
        """The elements `count` times, or without end."""
        return self._then("repeat", {} if _is_one_of(count, None, -1) else {"count": count}, origin)

    def take(self, count: Any, name: str | None = None, origin: Origin | None = None) -> Dataset:
        """The first elements."""
        return self._then("take", {"count": count}, origin)

    def skip(self, count: Any, name: str | None = None, origin: Origin | None = None) -> Dataset:
        """The elements after the first."""
        return self._then("skip", {"count": count}, origin)

    def shard(
        self, num_shards: Any, index: Any, name: str | None = None, origin: Origin | None = None
    ) -> Dataset:
        """Every num_shards-th element, from `index` on."""
        if isinstance(num_shards, int) and num_shards == SHARD_HINT:
            return self._then("shard", {"num_shards": "SHARD_HINT"}, origin)
        return self._then("shard", {"num_shards": num_shards, "index": index}, origin)

    def enumerate(
        self, start: Any = 0, name: str | None = None, origin: Origin | None = None
    ) -> Dataset:
        """(number, element)"""
        names = [leaf.name.text for leaf in nest.flatten(self.node.structure)]
        if "index" in names:
            raise ValueError("enumerate adds a column `index`, and there is one: rename it in a map")
        params = {} if start == 0 else {"start": start}
        structure = (Field(Name("index"), Spec("int64", ())), self.node.structure)
        return Dataset(Node("enumerate", params, (self.node,), structure, origin or caller()))

    def batch(
        self,
        batch_size: Any,
        drop_remainder: bool = False,
        num_parallel_calls: Any = None,
        deterministic: bool | None = None,
        name: str | None = None,
        origin: Origin | None = None,
    ) -> Dataset:
        """Elements of equal shape joined."""
        return self._batched("batch", batch_size, drop_remainder, {}, origin)

    def padded_batch(
        self,
        batch_size: Any,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
        name: str | None = None,
        origin: Origin | None = None,
    ) -> Dataset:
        """Elements joined and padded to the longest."""
        params = self._of_columns(padded_shapes=padded_shapes, padding_values=padding_values)
        return self._batched("padded_batch", batch_size, drop_remainder, params, origin)

    def ragged_batch(
        self,
        batch_size: Any,
        drop_remainder: bool = False,
        row_splits_dtype: Any = "int64",
        name: str | None = None,
        origin: Origin | None = None,
    ) -> Dataset:
        """Elements joined; dimensions that are not known become ragged."""
        return self._batched("ragged_batch", batch_size, drop_remainder, {}, origin)

    def _batched(
        self,
        stage: str,
        batch_size: Any,
        drop_remainder: bool,
        params: dict[str, Any],
        origin: Origin | None,
    ) -> Dataset:
        size = batch_size if drop_remainder and isinstance(batch_size, int) else None
        params = {"batch_size": batch_size, **params}
        if drop_remainder:
            params["drop_remainder"] = True

        def change(spec: Spec) -> Spec:
            kind = spec.kind
            shape = spec.shape
            if stage == "ragged_batch" and shape is not None and None in shape:
                kind = "ragged"
            if stage == "padded_batch" and shape is not None and (None in shape or "padded_shapes" in params):
                shape = tuple(None for _ in shape)
            return Spec(spec.dtype, None if shape is None else (size, *shape), kind)

        return self._then(stage, params, origin, change)

    def _of_columns(self, **values: Any) -> dict[str, Any]:
        """Parameters that are a nest like the element: a mapping of columns, or one value."""
        params: dict[str, Any] = {}
        structure = self.node.structure
        for parameter, value in values.items():
            if value is None:
                continue
            if isinstance(structure, Field):
                params[parameter] = _constant(value)
                continue
            entries: dict[str, Any] = {}
            _pair(structure, value, entries)
            if entries:
                params[parameter] = entries
        return params

    def unbatch(self, name: str | None = None, origin: Origin | None = None) -> Dataset:
        """Each element split along its first dimension."""
        return self._then("unbatch", {}, origin, _without_first)

    def rebatch(
        self,
        batch_size: Any,
        drop_remainder: bool = False,
        name: str | None = None,
        origin: Origin | None = None,
    ) -> Dataset:
        """Batches cut to another size."""
        params = {"batch_size": batch_size} | ({"drop_remainder": True} if drop_remainder else {})
        return self._then("rebatch", params, origin, lambda spec: Spec(
            spec.dtype, None if spec.shape is None else (None, *spec.shape[1:]), spec.kind))  # fmt: skip

    def cache(
        self, filename: str = "", name: str | None = None, origin: Origin | None = None
    ) -> Dataset:
        """The elements of the first epoch, kept for the others."""
        return self._then("cache", {"filename": filename} if filename else {}, origin)

    def prefetch(
        self, buffer_size: Any, name: str | None = None, origin: Origin | None = None
    ) -> Dataset:
        """The server works ahead by itself, so this adds nothing."""
        return self

    # Functions of elements.

    def map(
        self,
        map_func: Callable[..., Any],
        num_parallel_calls: Any = None,
        deterministic: bool | None = None,
        synchronous: bool | None = None,
        use_unbounded_threadpool: bool = False,
        name: str | None = None,
        origin: Origin | None = None,
    ) -> Dataset:
        """The elements that a function makes of the elements."""
        traced = trace(map_func, self.node.structure)
        if isinstance(traced.result, list):  # to tf.data a tuple; a list inside others is a tensor
            traced.result = tuple(traced.result)
        where = origin or caller()
        traced.result = nest.transform(lambda value: _as_component(value, where), traced.result)
        return self.mapped(traced, where)

    def mapped(self, traced: Traced, origin: Origin) -> Dataset:
        """The elements that a function has made."""
        structure = fields_of(traced, base_name)
        facts = {
            "result": traced.result,
            "scope": traced.scope,
            "names": [leaf.name for leaf in nest.flatten(structure)],
        }
        return Dataset(Node("map", {}, (self.node,), structure, origin, facts))

    def map_python(
        self,
        function: Any,
        output_signature: Any,
        seed: int | None = None,
        name: str | None = None,
        origin: Origin | None = None,
    ) -> Dataset:
        """The elements that a function makes in the server's interpreters, of NumPy arrays, bytes and numbers.

            ds.map_python("augment:train", TensorSpec([224, 224, 3], "uint8"))

        function: as map takes it, or its name. It may have a parameter rng, the row's own generator, by the seed.
        output_signature: the nest of TensorSpec that it gives."""
        from .python import mapped

        return Dataset(mapped(self.node, function, output_signature, seed, origin or caller()))

    def filter(
        self, predicate: Callable[..., Any], name: str | None = None, origin: Origin | None = None
    ) -> Dataset:
        """The elements for which a function gives true."""
        traced = trace(predicate, self.node.structure)
        result = self._then("filter", {}, origin)
        result.node.facts.update(result=_as_component(traced.result), scope=traced.scope)
        return result

    def interleave(
        self,
        map_func: Callable[..., Any],
        cycle_length: Any = None,
        block_length: Any = None,
        num_parallel_calls: Any = None,
        deterministic: bool | None = None,
        name: str | None = None,
        origin: Origin | None = None,
    ) -> Dataset:
        """The elements of several of the datasets that a function makes of the elements, in turn."""
        params = {"cycle_length": cycle_length}
        if not _is_one_of(block_length, None, 1):
            params["block_length"] = block_length
        made = self._of_datasets("interleave", map_func, params, origin)
        if _is_one_of(cycle_length, None, AUTOTUNE):
            why = "its cycle_length depends on the machine"
            remedy = "give cycle_length, and block_length if not 1"
            made.node.facts["unsupported"] = [Unsupported(made.node.origin, "interleave", why, remedy)]
        return made

    def flat_map(
        self, map_func: Callable[..., Any], name: str | None = None, origin: Origin | None = None
    ) -> Dataset:
        """The elements of the datasets that a function makes of the elements, one after the other."""
        return self._of_datasets("flat_map", map_func, {}, origin)

    def _of_datasets(
        self, stage: str, map_func: Callable[..., Any], params: dict[str, Any], origin: Origin | None
    ) -> Dataset:
        from .windows import batched_windows

        traced = trace(map_func, self.node.structure)
        if not isinstance(traced.result, Dataset):
            raise TypeError(f"{stage}: the function must return a tundish.data.Dataset")
        if self.node.stage == "windows":
            return batched_windows(self, traced.result, origin or caller())
        inner = traced.result.node
        facts = {"scope": traced.scope}
        node = Node(
            stage, {"dataset": inner, **params}, (self.node,), inner.structure, origin or caller(), facts
        )
        return Dataset(node)

    # Windows.

    def window(
        self,
        size: Any,
        shift: Any = None,
        stride: Any = 1,
        drop_remainder: bool = False,
        name: str | None = None,
        origin: Origin | None = None,
    ) -> Dataset:
        """Datasets of neighbours: `.flat_map(lambda window: window.batch(size))` comes next."""
        params = {"size": size}
        if shift is not None and shift is not size:
            params["shift"] = shift
        if not isinstance(stride, int) or stride != 1:
            params["stride"] = stride
        if drop_remainder:
            params["drop_remainder"] = True
        from .windows import windowed

        return windowed(self, params, origin)

    def group_by_window(
        self,
        key_func: Callable[..., Any],
        reduce_func: Callable[..., Any],
        window_size: Any = None,
        window_size_func: Callable[..., Any] | None = None,
        name: str | None = None,
        origin: Origin | None = None,
    ) -> Dataset:
        """Elements with one key batched together."""
        from .windows import grouped

        return grouped(self, key_func, reduce_func, window_size, window_size_func, origin or caller())

    def bucket_by_sequence_length(
        self,
        element_length_func: Callable[..., Any],
        bucket_boundaries: Sequence[int],
        bucket_batch_sizes: Sequence[int],
        padded_shapes: Any = None,
        padding_values: Any = None,
        pad_to_bucket_boundary: bool = False,
        no_padding: bool = False,
        drop_remainder: bool = False,
        name: str | None = None,
        origin: Origin | None = None,
    ) -> Dataset:
        """Elements of similar length batched together."""
        params: dict[str, Any] = {
            "bucket_boundaries": [int(each) for each in bucket_boundaries],
            "bucket_batch_sizes": [int(each) for each in bucket_batch_sizes],
            **self._of_columns(padded_shapes=padded_shapes, padding_values=padding_values),
        }
        flags = {
            "pad_to_bucket_boundary": pad_to_bucket_boundary,
            "no_padding": no_padding,
            "drop_remainder": drop_remainder,
        }
        params |= {flag: True for flag, is_set in flags.items() if is_set}
        from .windows import bucketed

        return bucketed(self, element_length_func, params, origin or caller())

    def with_options(self, options: Any, name: str | None = None) -> Dataset:
        """tf.data.Options: of what they say, auto_shard_policy counts."""
        from .distribution import with_options

        return with_options(self, options)

    def apply(self, transformation_func: Callable[[Dataset], Dataset]) -> Dataset:
        """The result of a function of this dataset."""
        return transformation_func(self)

    # Several datasets.

    @classmethod
    def zip(
        cls, *args: Any, datasets: Any = None, name: str | None = None, origin: Origin | None = None
    ) -> Dataset:
        """Elements side by side: a nest of datasets gives a nest of elements."""
        nested = datasets if datasets is not None else args[0] if len(args) == 1 else args
        parts = nest.flatten(nested)
        used: set[str] = set()
        seen: list[Name] = []
        renames = []
        structures = []
        for part in parts:
            structure, names = _distinct(part.node.structure, used, seen)
            structures.append(structure)
            renames.append(names)
        iterator = iter(structures)
        structure = nest.transform(lambda _: next(iterator), nested)
        inputs = tuple(part.node for part in parts)
        return cls(Node("zip", {}, inputs, structure, origin or caller(), {"renames": renames}))

    def concatenate(
        self, dataset: Dataset, name: str | None = None, origin: Origin | None = None
    ) -> Dataset:
        """This dataset, then another."""
        parts = [self, dataset]
        if self.node.stage == "concatenate":
            parts = [*map(Dataset, self.node.inputs), dataset]
        return _of_alike("concatenate", parts, {}, origin)

    @classmethod
    def sample_from_datasets(
        cls,
        datasets: Sequence[Dataset],
        weights: Sequence[float] | None = None,
        seed: int | None = None,
        stop_on_empty_dataset: bool = False,
        rerandomize_each_iteration: bool | None = None,
        name: str | None = None,
        origin: Origin | None = None,
    ) -> Dataset:
        """Each element from one of the datasets, drawn at random: TensorFlow's draws, the same in each epoch."""
        if rerandomize_each_iteration:
            raise ValueError(
                "sample_from_datasets repeats its draws in each epoch: leave rerandomize_each_iteration out"
            )
        params: dict[str, Any] = {}
        if weights is not None:
            params["weights"] = [float(weight) for weight in weights]
        if seed is not None:
            params["seed"] = seed
        if stop_on_empty_dataset:
            params["stop_on_empty_dataset"] = True
        return _of_alike("sample_from_datasets", list(datasets), params, origin)

    @classmethod
    def choose_from_datasets(
        cls,
        datasets: Sequence[Dataset],
        choice_dataset: Dataset,
        stop_on_empty_dataset: bool = True,
        name: str | None = None,
        origin: Origin | None = None,
    ) -> Dataset:
        """Each element from the dataset that choice_dataset names."""
        params: dict[str, Any] = {"choice_dataset": choice_dataset.node}
        if not stop_on_empty_dataset:
            params["stop_on_empty_dataset"] = False
        return _of_alike("choose_from_datasets", list(datasets), params, origin)

    stage = _ByHand()

    # Out of it.

    def yaml(self, stream: str = "train") -> str:
        """The pipeline file. Raises tundish.data.UnsupportedError with all that it cannot say."""
        from .plan import text_of

        return text_of({stream: self})

    def save(self, path: Any, stream: str = "train") -> None:
        """Write the pipeline file, and the files that it needs beside it."""
        from .plan import save

        save(path, **{stream: self})

    def peek(self, steps: int = 3, **options: Any) -> Any:
        """The first batches, made without a server: tundish.peek of this dataset."""
        from .plan import peek

        return peek(self, steps, **options)

    def check(self, program: Any, steps: int = 50, **options: Any) -> str:
        """Compare the first batches with those of a program with tf.data, to the bit.

            print(ds.check(input_program.make_dataset))

        program: a function that gives a tf.data.Dataset, its name as "input.py:make_dataset", or a dataset that
        nobody has read yet. Options: stream, of a program that gives several; root, where paths begin. Needs
        TensorFlow. Returns what is the same, in words; raises tundish.data.DifferenceError with the first
        difference.
        """
        from .checking import check

        return check(self, program, steps, **options)

    def __getattr__(self, name: str) -> Any:
        raise _absent(name)

    def __iter__(self) -> Any:
        raise TypeError("a dataset is read by a server: `for batch in tundish.open(ds)`, or ds.peek()")

    def __repr__(self) -> str:
        return f"<tundish.data.Dataset {self.node.stage}, {self.element_spec}>"


def _is_one_of(value: Any, *plain: Any) -> bool:
    """A column is compared to nothing: its == makes another column."""
    return not isinstance(value, Column) and value in plain


def has_columns(value: Any) -> bool:
    """Whether a nested list has a column in it."""
    if isinstance(value, list):
        return any(has_columns(item) for item in value)
    return isinstance(value, Column)


def _as_component(value: Any, origin: Origin | None = None, dtype: str | None = None) -> Any:
    """A function's result as a component: lists become tensors, as in tf.data, in which constants take
    the dtype of the columns beside them."""
    if isinstance(value, (Column, Dataset)):
        return value
    if isinstance(value, list) and has_columns(value):
        own = dtype or _dtype_in(value)
        made = record("tf.stack", ([_as_component(item, origin, own) for item in value],), {})
    else:
        made = record("tf.constant", (value,), {} if dtype is None else {"dtype": dtype})
    made.call.origin = origin or made.call.origin
    return made


def _dtype_in(value: Any) -> str | None:
    """The dtype of the first column in a nested list."""
    if isinstance(value, list):
        return next(filter(None, map(_dtype_in, value)), None)
    return value.spec.dtype if isinstance(value, Column) else None


def _as_arrays(tensors: Any) -> Any:
    """A nest of values, in which constants of tundish.tf are values with a dtype."""

    def plain(value: Any) -> Any:
        if isinstance(value, list) and any(hasattr(item, "tolist") for item in value):
            own = next(item.dtype for item in value if hasattr(item, "tolist"))
            return Typed(
                [item.tolist() if hasattr(item, "tolist") else item for item in value], as_dtype(own)
            )
        if not isinstance(value, Column) or value.call is None or value.call.name != "tf.constant":
            return value
        call = value.call
        constant = call.args[0] if call.args else call.kwargs["value"]
        return Typed(constant, str(value.spec.dtype))

    return nest.transform(plain, tensors)


def _constant(value: Any) -> Any:
    """A parameter's value as plain Python."""
    if isinstance(value, Column) and value.call is not None and value.call.name == "tf.constant":
        value = value.call.args[0]
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, tuple):
        return [_constant(item) for item in value]
    return value.as_list() if hasattr(value, "as_list") else as_text(value)


def _pair(structure: Any, value: Any, entries: dict[str, Any]) -> None:
    """Each component's own value."""
    if value is None:
        return
    if isinstance(structure, Field):
        entries[structure.name.text] = _constant(value)
    elif isinstance(structure, Mapping) and isinstance(value, Mapping):
        for key, inner in structure.items():
            _pair(inner, value.get(key), entries)
    elif not isinstance(value, (tuple, list)) or len(value) != len(structure):
        raise TypeError(f"{value!r} is not a nest as the element is, {structure!r}")
    else:
        for inner, each in zip(structure, value):
            _pair(inner, each, entries)


def _without_first(spec: Spec) -> Spec:
    shape = None if not spec.shape else spec.shape[1:]
    return Spec(spec.dtype, shape, spec.kind if shape is None or len(shape) > 0 else "dense")


def _distinct(structure: Any, used: set[str], seen: list[Name]) -> tuple[Any, dict[Name, Name]]:
    """The structure with names that are not used yet, and which name each component had."""
    renames: dict[Name, Name] = {}

    def change(leaf: Any) -> Any:
        if leaf.name.text not in used:
            used.add(leaf.name.text)
            seen.append(leaf.name)
            return leaf
        number = 1
        while f"{leaf.name.text}_{number}" in used:
            number += 1
        text = f"{leaf.name.text}_{number}"
        used.add(text)
        if not leaf.name.is_chosen and not any(leaf.name is each for each in seen):
            leaf.name.text = text  # nobody gave it its name, so the source may give it another
            seen.append(leaf.name)
            return leaf
        new = Name(text, False)
        renames[leaf.name] = new
        return Field(new, leaf.spec)

    return nest.transform(change, structure), renames


def _of_alike(
    stage: str, datasets: list[Dataset], params: dict[str, Any], origin: Origin | None
) -> Dataset:
    """Several datasets with the same components, which take the first one's names."""
    first = datasets[0].node.structure
    leaves = nest.flatten(first)
    renames: list[dict[Name, Name]] = []
    for dataset in datasets:
        others = nest.flatten(dataset.node.structure)
        if len(others) != len(leaves):
            raise TypeError(f"{stage}: the datasets have different components")
        renames.append(
            {own.name: leaf.name for own, leaf in zip(others, leaves) if own.name is not leaf.name}
        )
    inputs = tuple(dataset.node for dataset in datasets)
    together = iter(
        Field(leaf.name, _of_each([nest.flatten(each.structure)[i].spec for each in inputs])) for i, leaf in enumerate(leaves)
    )
    structure = nest.transform(lambda _: next(together), first)
    return Dataset(Node(stage, params, inputs, structure, origin or caller(), {"renames": renames}))


def _of_each(specs: list[Spec]) -> Spec:
    """The part that is the same in all."""
    first, shapes = specs[0], [spec.shape for spec in specs]
    if len({None if shape is None else len(shape) for shape in shapes}) > 1 or shapes[0] is None:
        return Spec(first.dtype, None, first.kind)
    known = [shape for shape in shapes if shape is not None]
    sizes = tuple(size[0] if len(set(size)) == 1 else None for size in zip(*known))
    return Spec(first.dtype, sizes, first.kind)
