"""Datasets as a pipeline file."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from . import nest
from .beside import Beside
from .distribution import CONTEXT
from .folding import fold_columns, fold_entries, reads_as_several
from .graph import Column, Field, Name, Node, Scope, Unsupported
from .lowering.rule import Refused
from .python import COMMAND
from .lowering.schedule import Stage, base_name, leaves, lower
from .lowering.writer import column_name
from .yaml_text import Variable, block, flow, scalar

__all__ = ["Emission", "document"]

# Stages whose first parameter may stand alone, with that parameter.
SHORT = {
    "range": "stop", "list_files": "file_pattern", "tfrecord": "filenames", "text_line": "filenames",
    "shuffle": "buffer_size", "repeat": "count", "take": "count", "skip": "count", "batch": "batch_size",
    "padded_batch": "batch_size", "ragged_batch": "batch_size", "rebatch": "batch_size", "enumerate": "start",
    "filter": "predicate", "cache": "filename", "prefetch": "buffer_size", "window": "size",
    "shard": "num_shards", "zip": "datasets", "concatenate": "datasets", "sample_from_datasets": "datasets",
    "flat_map": "dataset",
    "select": "columns", "drop": "columns", "cast": "dtype", "one_hot": "depth", "decode_raw": "out_type",
    "reshape": "shape",
}  # fmt: skip


_RANGE = re.compile(r"[0-9]\.\.|\{column\}|\0")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass
class Level:
    """A function that is being written: its columns, and those to make before it for its datasets."""

    scope: Scope
    names: list[str]
    made: list[tuple[Name, Any]] = field(default_factory=list)

    def name(self, column: Column) -> str:
        """A column for a computed value."""
        for name, value in self.made:
            if value is column:
                return name.text
        text = base_name(column)
        text = text if _WORD.fullmatch(text) else "value"
        while text in self.names:
            text += "_"
        self.names.append(text)
        self.made.append((Name(text), column))
        return text


class Emission:
    """One pipeline file in the making: what stands beside it, and what it cannot say."""

    def __init__(self, folder: str = "") -> None:
        self.beside = Beside(folder)
        self.unsupported: list[Unsupported] = []
        self.levels: list[Level] = []
        self.keeps_maps = False  # also those that change nothing
        self.is_part = False  # what is written is a part of something, and complains of nothing
        self.is_short = False  # of a part: something could not be written
        self.sections: dict[str, dict[str, Any]] = {}
        self.drawing: list[Node] = []  # the nodes that draw, in the order in which they are written
        self.named: dict[str, list[Stage]] = {}  # datasets that others mention by name
        self._names: dict[Node, str] = {}  # of this stream's
        self.failing: list[Node] = []  # of what is not carried over

    @property
    def seed(self) -> int | None:
        """The program's, if something draws by it."""
        return self.drawing[0].seed if self.drawing else None

    def stages(self, node: Node) -> list[Stage]:
        """The stages of a stream's dataset. A part used twice, or one that draws, is one dataset, as in the program:
        each iterator of it draws another order."""
        self._names = {}
        for each in _used_twice(node):
            self._names[each] = self._free_name()
        for each in _keeping_one_order(node):
            why = "it keeps the order of one use of a shuffled dataset, and in tf.data another use draws its own"
            self.complain(each, "cache", why, "cache before the shuffle, or after the uses are joined")
        return self._stages(node)

    def _free_name(self) -> str:
        taken = {*self.named, *self._names.values()}
        numbers = (f"rows_{number}" for number in itertools.count(2))
        return next(name for name in itertools.chain(["rows"], numbers) if name not in taken)

    def _stages(self, node: Node) -> list[Stage]:
        name = self._names.get(node)
        if name is None:
            return self._written(node)
        if name not in self.named:
            self.named[name] = self._written(node)
        return [Stage("zip", {"datasets": [name]})]

    def _part(self, node: Node) -> Any:
        """A dataset for a stage that takes some: a name, or stages."""
        return self._names[node] if node in self._names and self._stages(node) else self._stages(node)

    def _written(self, node: Node) -> list[Stage]:
        before = [] if node.stage in FIRST else [stage for each in node.inputs for stage in self._stages(each)]
        if _is_drawing(node):
            self._draws(node)
        for told in node.facts.get("unsupported", []):
            self.complain(node, told.name, told.why, told.remedy)
        make = _MAKERS.get(node.stage, Emission._plain)
        try:
            made = make(self, node)
        except Refused as refused:
            self.complain(node, node.stage, refused.why, refused.remedy)
            made = []
        self._check_names(node, made)
        return before + made

    def _check_names(self, node: Node, made: list[Stage]) -> None:
        """A file cannot say each name of a column that is new."""
        names = {name for stage in made for name in _named(stage) if reads_as_several(name)}
        names |= {each.text for each in _names(node) if _RANGE.search(each.text)}
        for name in sorted(names):
            why = f"a pipeline file would take the column {name!r} for several"
            self.complain(node, node.stage, why, "give it another name")

    def complain(self, node: Node, name: str, why: str, remedy: str) -> None:
        told = Unsupported(node.origin, name, why, remedy)
        if self.is_part:  # it may be right as a whole
            self.is_short = True
            return
        self.failing.append(node)
        if told not in self.unsupported:
            self.unsupported.append(told)

    def _draws(self, node: Node) -> None:
        """A pipeline file has one seed, and stages without a seed of their own draw theirs in the order in
        which they are written."""
        remedy = "give it a seed"
        if self.drawing and node.seed != self.drawing[0].seed:
            self.complain(
                node, node.stage, "set_seed was called between two datasets", "call it once, before"
            )
        if node.seed is not None and node.params.get("seed") is None and not self.levels:
            unseeded = [each for each in self.drawing if each.params.get("seed") is None]
            if node in unseeded:
                self.complain(
                    node, node.stage, "the dataset is used twice, and has one seed in tf.data", remedy
                )
            elif unseeded and unseeded[-1].serial > node.serial:
                self.complain(
                    node, node.stage, "it was built before one that is written before it", remedy
                )
        self.drawing.append(node)

    def outer_name(self, column: Column) -> str | None:
        """$name, unless an inner function has a column of that name, or it is not a word."""
        assert column.field is not None
        text = column.field.name.text
        if column.scope is CONTEXT:
            return Variable("$" + text)
        for level in reversed(self.levels):
            if level.scope is column.scope:
                return Variable("$" + text) if _WORD.fullmatch(text) else None
            if text in level.names:
                return None
        return None

    def value(self, node: Node, value: Any) -> Any:
        """A parameter, in which columns of the outer dataset are $name."""
        if isinstance(value, Column):
            text = self.outer_name(value) if value.field is not None else self._computed(value)
            if text is None:
                why = "a parameter is computed from more than the nearest outer element"
                self.complain(node, node.stage, why, "compute it in a map before, and use its column")
                return 0
            return text
        if isinstance(value, (list, tuple)):
            return [self.value(node, item) for item in value]
        if isinstance(value, Mapping):
            return {getattr(key, "text", key): self.value(node, item) for key, item in value.items()}
        return value.text if isinstance(value, Name) else value

    def _computed(self, value: Column) -> str | None:
        """$name of a column that the nearest outer function computes."""
        scopes = {each.scope for each in leaves(value)}
        if not self.levels or scopes != {self.levels[-1].scope}:
            return None
        return Variable("$" + self.levels[-1].name(value))

    def _sections(self, node: Node) -> list[Stage]:
        for section, values in node.facts["sections"].items():
            self.sections.setdefault(section, {}).update(values)
        return []

    def _windows(self, node: Node) -> list[Stage]:
        self.complain(
            node, "window", "its windows stay datasets", "flat_map(lambda window: window.batch(size))"
        )
        return []

    def _grouped(self, node: Node) -> list[Stage]:
        stages, key, made = self._own_expression(node, node.facts["key"])
        stage = self._plain(node)[0]
        stage.params = {"key": key, **stage.params}
        if "size" in node.facts:
            names = [node.facts["size_key"].name]
            lowered, unsupported = lower(
                names,
                [(Name("size"), node.facts["size"])],
                node.facts["size_scope"],
                node.origin,
                self.outer_name,
            )
            self.unsupported += unsupported
            self.failing += [node] if unsupported else []
            if not unsupported:
                stage.params["window_size_func"] = lowered[0].params["size"]
        stages.append(stage)
        return stages + ([Stage("drop", {"columns": made}, [node.origin])] if made else [])

    def _plain(self, node: Node) -> list[Stage]:
        params = {name: self.value(node, value) for name, value in node.params.items()}
        if not node.inputs and isinstance(node.structure, Field) and node.structure.name.text != "value":
            params["name"] = node.structure.name.text
        return [Stage(node.stage, params, [node.origin])]

    def _reader(self, node: Node) -> list[Stage]:
        stage = self._plain(node)[0]
        filenames = stage.params.get("filenames")
        if isinstance(filenames, Variable) and filenames == "$value":
            del stage.params["filenames"]
        return [stage]

    def _by_hand(self, node: Node) -> list[Stage]:
        written = self._as_written(node, node.params["parameters"])
        return [Stage(node.params["stage"], written, [node.origin], is_written=True)]

    def _as_written(self, node: Node, value: Any) -> Any:
        """A parameter that stands in the file as it is. Datasets are lists of stages."""
        if isinstance(value, Node):
            part = self._part(value)
            return part if isinstance(part, str) else [entry(each) for each in part]
        if isinstance(value, Mapping):
            return {name: self._as_written(node, each) for name, each in value.items()}
        if isinstance(value, list):
            return [self._as_written(node, each) for each in value]
        return self.value(node, value)

    def _map(self, node: Node) -> list[Stage]:
        outputs = list(zip(node.facts["names"], nest.flatten(node.facts["result"])))
        stages = self._lowered(node, outputs, True)
        if stages or not self.keeps_maps:
            return stages
        name = outputs[0][0].text
        return [Stage("map", {name: column_name(name)}, [node.origin])]

    def _python(self, node: Node) -> list[Stage]:
        """Columns of the interpreters' making, in the place of those before."""
        return self._of_python(node, [leaf.name.text for leaf in nest.flatten(node.structure)])

    def _of_python(self, node: Node, kept: list[str]) -> list[Stage]:
        before = by_path(node.inputs[0].structure)
        gives = by_path(node.facts["gives"])
        names = [[leaf.name.text for leaf in each] for each in (before, gives)]
        nests = map(_plain_names, (node.inputs[0].structure, node.facts["gives"])) if "nests" in node.facts else names
        arguments = {**node.params["arguments"], **self._object(node), **dict(zip(("takes", "gives"), nests))}
        written = {"call": node.params["call"], "arguments": arguments, "columns": names[0]}
        if all(leaf.spec.shape is not None for leaf in gives):
            written["output"] = described(gives)
        if _is_batched(node.inputs[0]):
            written["rows"] = "batch"
        if "seed" in node.params:
            written["seed"] = node.params["seed"]
        stages = [Stage("python", written, [node.origin], is_written=True)]
        gone = [leaf.name.text for leaf in nest.flatten(node.inputs[0].structure) if leaf.name.text not in kept]
        return stages + ([Stage("drop", {"columns": gone}, [node.origin])] if gone else [])

    def _python_filter(self, node: Node) -> list[Stage]:
        (keep,) = nest.flatten(node.facts["gives"])
        names = [leaf.name.text for leaf in nest.flatten(node.structure)]
        while keep.name.text in names:
            keep.name.text += "_"
        return [
            *self._of_python(node, names),
            Stage("filter", {"predicate": column_name(keep.name.text)}, [node.origin]),
            Stage("drop", {"columns": [keep.name.text]}, [node.origin]),
        ]

    def _program(self, node: Node) -> list[Stage]:
        fields = by_path(node.structure)
        gives = _plain_names(node.structure) if "nests" in node.facts else [leaf.name.text for leaf in fields]
        job = {**node.params["job"], **self._object(node), "gives": gives, "spec": described(fields)}
        written = {"command": [*COMMAND, node.params["module"], json.dumps(job)], "spec": described(fields)}
        return [Stage("program", written, [node.origin], is_written=True)]

    def _object(self, node: Node) -> dict[str, str]:
        """A function or data set, by its name or pickled."""
        if "object" not in node.params:
            return {}
        name, content = node.params["object"]
        return {"call": name} if content is None else self.beside.pickle(content)

    def _python_dataset(self, node: Node) -> list[Stage]:
        spec = described([leaf for leaf in nest.flatten(node.structure)])
        written = {"make": "tundish.elements:indexable", "arguments": self._object(node), "spec": spec}
        return [Stage("python_dataset", written, [node.origin], is_written=True)]

    def _filter(self, node: Node) -> list[Stage]:
        stages, text, made = self._own_expression(node, node.facts["result"])
        stages.append(Stage("filter", {"predicate": text}, [node.origin]))
        return stages + ([Stage("drop", {"columns": made}, [node.origin])] if made else [])

    def _own_expression(self, node: Node, value: Any) -> tuple[list[Stage], str, list[str]]:
        """The same of a function that is not a map in the program."""
        stages, text, made = self._expression(node, value)
        if stages and self.keeps_maps and _is_batched(node.inputs[0]):
            why = "a stage would stand before it, after which TensorFlow's rule of rebatching is another one"
            self.complain(node, node.stage, why, "compute the column in a map before the batch")
        return stages, text, made

    def _expression(self, node: Node, value: Any) -> tuple[list[Stage], str, list[str]]:
        """A value as the expression of a stage: what is computed before, the text, and the columns made."""
        inputs = _names(node.inputs[0])
        if isinstance(value, Column) and value.field is not None:
            return [], column_name(value.field.name.text), []
        own = Name("keep", False)
        while own.text in [name.text for name in inputs]:
            own = Name(own.text + "_", False)
        stages = self._lowered(node, [(own, value)], False)
        made = [name for stage in stages for name in _made(stage)]
        if not stages or stages[-1].name != "map" or own.text not in stages[-1].params:
            return stages, own.text, made
        text = stages[-1].params.pop(own.text)
        made.remove(own.text)
        if not stages[-1].params:
            stages.pop()
        return stages, text, made

    def _lowered(self, node: Node, outputs: list[tuple[Name, Any]], is_exact: bool) -> list[Stage]:
        inputs = _names(node.inputs[0])
        stages, unsupported = lower(
            inputs, outputs, node.facts["scope"], node.origin, self.outer_name, is_exact, not is_exact
        )
        self.unsupported += [each for each in unsupported if each not in self.unsupported]
        self.failing += [node] if unsupported else []
        for stage in stages:
            self.beside.vocabulary(stage.name, stage.params)
        return stages

    def _of_datasets(self, node: Node) -> list[Stage]:
        inner: Node = node.params["dataset"]
        level = Level(node.facts["scope"], [name.text for name in _names(node.inputs[0])])
        self.levels.append(level)
        stages = self._part(inner)
        for each in _all_of(inner):
            if _reshuffles(each) and each.depth < len(self.levels):
                why = "it was made outside of the function, and draws another order in each run of it"
                self.complain(each, each.stage, why, "make it in the function, or use repeat")
        self.levels.pop()
        before = self._lowered(node, level.made, False) if level.made else []
        params = {
            name: self.value(node, value) for name, value in node.params.items() if name != "dataset"
        }
        return [*before, Stage(node.stage, {"dataset": stages, **params}, [node.origin])]

    def _joined(self, node: Node) -> list[Stage]:
        renames = node.facts.get("renames", [{} for _ in node.inputs])
        parts = [self._renamed(each, names) for each, names in zip(node.inputs, renames)]
        params: dict[str, Any] = {"datasets": parts}
        for name, value in node.params.items():
            params[name] = self._part(value) if isinstance(value, Node) else value
        return [Stage(node.stage, params, [node.origin])]

    def _renamed(self, node: Node, names: dict[Name, Name]) -> Any:
        changed = {old.text: new.text for old, new in names.items() if old.text != new.text}
        return [*self._stages(node), Stage("rename", changed)] if changed else self._part(node)

    def _tensors(self, node: Node) -> list[Stage]:
        entries = {}
        for name, value in zip(_names(node), nest.flatten(node.facts["values"])):
            entries[name.text] = self._values(node, name.text, value)
        return [Stage(node.stage, entries, [node.origin])]

    def _values(self, node: Node, column: str, value: Any) -> Any:
        if isinstance(value, Column):
            return self.value(node, value)
        file = self.beside.array(column, value)
        return _tensor(value) if file is None else {"npy": file}


def _plain_names(structure: Any) -> Any:
    """The nest of the components' names, with lists for tuples."""
    if isinstance(structure, Mapping):
        return {key: _plain_names(item) for key, item in structure.items()}
    if isinstance(structure, tuple):
        return [_plain_names(item) for item in structure]
    return structure.name.text


def by_path(structure: Any) -> list[Field]:
    """The components in an order that does not depend on that of keys."""
    return [leaf for _, leaf in sorted(nest.paths(structure), key=lambda each: tuple(map(str, each[0])))]


def described(fields: list[Field]) -> dict[str, Any]:
    """Columns as `output` of a stage has them."""
    return {
        leaf.name.text: {"dtype": leaf.spec.dtype, "shape": list(leaf.spec.shape or ())} for leaf in fields
    }


def _tensor(value: Any) -> Any:
    """Values of a source, with their dtype if it is not the one that they would take."""
    from .dtypes import of_value

    plain = value.tolist() if hasattr(value, "tolist") else value
    dtype = of_value(value)
    return plain if dtype == of_value(plain) else {"values": plain, "dtype": dtype}


def _inner(node: Node) -> list[Node]:
    """The datasets that a stage has: its inputs, and those among its parameters."""
    return [*node.inputs, *_nodes_in(node.params)]


def _nodes_in(value: Any) -> list[Node]:
    if isinstance(value, Node):
        return [value]
    parts = value.values() if isinstance(value, Mapping) else value if isinstance(value, (list, tuple)) else ()
    return [node for part in parts for node in _nodes_in(part)]


def _used_twice(root: Node) -> list[Node]:
    """The datasets that draw an order, and of which a stream makes several iterators."""
    uses: dict[Node, int] = {}

    def visit(node: Node) -> None:
        for each in _inner(node):
            uses[each] = uses.get(each, 0) + 1
            if uses[each] == 1:
                visit(each)

    visit(root)
    return [node for node, count in uses.items() if count > 1 and _draws_order(node)]


def _keeping_one_order(root: Node) -> list[Node]:
    """The caches after some uses of a shuffled dataset, but not after all."""
    nodes = _all_of(root)
    shuffles = list(filter(_reshuffles, nodes))
    found = []
    for cache in (node for node in nodes if node.stage == "cache"):
        for shuffle in shuffles:
            within, uses = _paths(cache, shuffle), _paths(root, shuffle)
            # One after the other they read what is kept.
            is_in_turn = within == 1 and _paths(root, cache) == uses and _are_in_turn(root, cache)
            if 0 < within < uses and not is_in_turn:
                found.append(cache)
    return found


def _all_of(root: Node) -> list[Node]:
    nodes = [root]
    seen = {root}
    for node in nodes:
        fresh = dict.fromkeys(each for each in _inner(node) if each not in seen)
        nodes += fresh
        seen |= fresh.keys()
    return nodes


def _paths(root: Node, node: Node) -> int:
    """In how many ways one uses the other."""
    known = {node: 1}

    def count(each: Node) -> int:
        if each not in known:
            known[each] = sum(map(count, _inner(each)))
        return known[each]

    return count(root)


def _are_in_turn(root: Node, node: Node) -> bool:
    joins = [each for each in _all_of(root) if sum(_paths(inner, node) > 0 for inner in _inner(each)) > 1]
    return all(each.stage == "concatenate" for each in joins)


def _draws_order(node: Node) -> bool:
    return any(map(_is_drawing, _all_of(node)))


def _is_drawing(node: Node) -> bool:
    return node.stage in DRAWING and bool(node.params.get("shuffle", node.stage != "directory"))


def _reshuffles(node: Node) -> bool:
    """Whether each iterator of it has another order."""
    is_mixture = node.stage == "sample_from_datasets"  # which repeats its draws
    return _is_drawing(node) and not is_mixture and bool(node.params.get("reshuffle_each_iteration", True))


def _is_batched(node: Node) -> bool:
    """Whether its elements are batches."""
    while node.stage not in ("batch", "padded_batch", "ragged_batch") and node.inputs:
        if node.stage == "unbatch":
            return False
        node = node.inputs[0]
    return bool(node.inputs)


def _names(node: Node) -> list[Name]:
    return [leaf.name for leaf in nest.flatten(node.structure) if isinstance(leaf, Field)]


def _named(stage: Stage) -> list[str]:
    """The new columns that a stage names."""
    if stage.is_written or not isinstance(stage.params, dict):
        return []
    listed = stage.params.get("column_names", []), stage.params.get("features", [])
    return [*_made(stage), *(name for names in listed for name in names if name is not None)]


def _made(stage: Stage) -> list[str]:
    """The columns that a stage adds."""
    if stage.name == "map":
        return list(stage.params)
    output = stage.params.get("output", []) if isinstance(stage.params, dict) else []
    return [output] if isinstance(output, str) else list(output)


_MAKERS = {
    "by_hand": Emission._by_hand,
    "map": Emission._map,
    "python": Emission._python,
    "python_filter": Emission._python_filter,
    "program": Emission._program,
    "python_dataset": Emission._python_dataset,
    "filter": Emission._filter,
    "interleave": Emission._of_datasets,
    "flat_map": Emission._of_datasets,
    "zip": Emission._joined,
    "concatenate": Emission._joined,
    "sample_from_datasets": Emission._joined,
    "choose_from_datasets": Emission._joined,
    "from_tensors": Emission._tensors,
    "from_tensor_slices": Emission._tensors,
    "tfrecord": Emission._reader,
    "text_line": Emission._reader,
    "fixed_length_record": Emission._reader,
    "csv": Emission._reader,
    "parquet": Emission._reader,
    "webdataset": Emission._reader,
    "sections": Emission._sections,
    "windows": Emission._windows,
    "group_by_window": Emission._grouped,
}
DRAWING = ("shuffle", "list_files", "sample_from_datasets", "directory")
FIRST = ("zip", "concatenate", "sample_from_datasets", "choose_from_datasets")


# How stages are written.


def entry(stage: Stage) -> Any:
    """A stage as the value of a list: a word, or a mapping with one key."""
    params = _tidy(stage)
    if stage.name == "range" and params:
        return {"range": _bounds(params)}
    if isinstance(params, Mapping):
        if not params and stage.name not in ("map", "from_tensors", "from_tensor_slices"):
            return stage.name
        first = SHORT.get(stage.name)
        if list(params) == [first] and first != "default_value":
            value = params[first]
            if not isinstance(value, Mapping):
                return {stage.name: value}
    return {stage.name: params}


def _bounds(params: Any) -> Any:
    """range's short forms."""
    if set(params) <= {"start", "stop", "step"}:
        start, stop, step = params.get("start", 0), params["stop"], params.get("step", 1)
        if step != 1:
            return [start, stop, step]
        return stop if start == 0 else [start, stop]
    return params


def _tidy(stage: Stage) -> Any:
    """Parameters with columns folded and inner datasets written out."""
    params = stage.params
    if stage.is_written:
        return params
    if stage.name == "map":
        return fold_entries(params, stage.columns, is_map=True)
    if stage.name == "parse_example":
        return _features(params)
    if stage.name in ("from_tensors", "from_tensor_slices", "rename", "values"):
        return params
    tidied = {}
    for name, value in params.items():
        if name in ("dataset", "choice_dataset") and isinstance(value, list):
            value = [entry(each) for each in value]
        elif name == "datasets":
            value = [part if isinstance(part, str) else [entry(each) for each in part] for part in value]
        elif name in ("columns", "output", "column_names") and isinstance(value, list):
            value = fold_columns(value)
            if name == "column_names" and isinstance(value, str):
                value = [value]
        tidied[name] = value
    return tidied


def _features(params: dict[str, Any]) -> dict[str, Any]:
    features = params["features"]
    folded = fold_entries(features, list(features))
    rest = {name: value for name, value in params.items() if name != "features"}
    if len(folded) == len(features):
        return {"features": features, **rest}
    columns = fold_columns(list(features))
    return {"features": folded, "columns": columns if isinstance(columns, list) else [columns], **rest}


def document(
    streams: dict[str, tuple[list[Stage], dict[str, Any]]],
    seed: int | None = None,
    learns: str | None = None,
    named: dict[str, list[Stage]] | None = None,
) -> str:
    """The text of a pipeline file. Each stream has stages, and its other sections. learns: the stream that
    statistics are learned from. named: the datasets that streams mention."""
    for stages, _ in streams.values():
        _share_draws(stages, named or {})
    lines = [] if seed is None else [f"seed: {seed}"]
    lines += [] if learns is None else [f"learn_from: {scalar(learns)}"]
    lines += ["datasets:"] if named else []
    for name, stages in (named or {}).items():
        lines += [f"  {name}:", *(_line(stage, 4) for stage in stages)]
    lines.append("streams:")
    for name, (stages, sections) in streams.items():
        lines += [f"  {scalar(name)}:", "    dataset:", *(_line(stage, 6) for stage in stages)]
        for section, value in sections.items():
            if value:
                lines.append(f"    {section}:{block(value, 6, 5 + len(section))}")
    return "\n".join(lines) + "\n"


def _share_draws(stages: list[Stage], named: dict[str, list[Stage]]) -> None:
    """A layer that draws in several stages is one object, which counts its calls in all of them; a stage of a
    dataset that is mentioned twice is several."""
    by_layer: dict[int, list[Stage]] = {}
    for stage in _with_layers(stages, named):
        by_layer.setdefault(id(stage.layer), []).append(stage)
    shared = [together for together in by_layer.values() if len(together) > 1]
    for number, together in enumerate(shared, 1):
        for stage in {id(each): each for each in together}.values():
            stage.params = {**(stage.params or {}), "draws": f"layer_{number}", "redraw": True}


def _with_layers(value: Any, named: dict[str, list[Stage]]) -> Iterator[Stage]:
    if isinstance(value, Stage):
        if value.layer is not None:
            yield value
        parts = value.params if value.name in (*FIRST, "interleave", "flat_map") else {}
        mentions = [*parts.get("datasets", []), parts.get("dataset"), parts.get("choice_dataset")]
        yield from _with_layers([named[each] for each in mentions if isinstance(each, str)], named)
        yield from _with_layers(value.params, named)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _with_layers(each, named)
    elif isinstance(value, Mapping):
        yield from _with_layers(list(value.values()), named)


def _line(stage: Stage, indent: int) -> str:
    margin = " " * indent
    written = entry(stage)
    comment = "  # " + ", ".join(str(origin) for origin in stage.origins[:3]) if stage.origins else ""
    text = written if isinstance(written, str) else flow(written)[1:-1]
    if isinstance(written, str) or len(text) + 8 <= 96:
        return f"{margin}- {text}{comment}"
    ((name, params),) = written.items()
    body = block(params, indent + 4, 200)
    if body.startswith("\n"):
        return f"{margin}- {name}:{comment}{body}"
    return f"{margin}- {name}:{body}{comment}"
