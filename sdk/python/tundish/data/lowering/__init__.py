"""The stages that each public function becomes, and how the calls of a traced function become stages."""

from __future__ import annotations

from typing import Any

from ..graph import Call, Column, Spec, caller
from . import expressions, images, layers, lookups, parsing, rewrites, shapes, sparse, stages, transform
from .rule import Rule
from .specs import constant_spec

__all__ = ["METHODS", "PARTS", "RULES", "constant_spec", "find", "record"]

RULES: dict[str, Rule] = {
    rule.name: rule
    for table in (expressions, rewrites, parsing, stages, images, layers, lookups, shapes, sparse, transform)
    for rule in table.RULES
}

# Methods of ragged and sparse columns.
METHODS = {
    "to_tensor": "tf.RaggedTensor.to_tensor",
    "to_sparse": "tf.RaggedTensor.to_sparse",
}
# Attributes of sparse columns.
PARTS = {name: f"tf.SparseTensor.{name}" for name in ("indices", "values", "dense_shape")}


def find(name: str) -> Rule | None:
    """The rule of a public name, or of one of its aliases."""
    for alias in _aliases(name):
        if alias in RULES:
            return RULES[alias]
    return None


def _aliases(name: str) -> list[str]:
    names = [name]
    if name.startswith("keras."):
        names.append("tf." + name)
    if name.startswith("tf.math."):
        names.append("tf." + name.removeprefix("tf.math."))
    elif name.startswith(("tf.image.decode_", "tf.strings.")):
        names.append("tf.io." + name.rpartition(".")[2])
    elif name.count(".") == 1:
        names += ["tf.math." + name[3:], "tf.io." + name[3:], "tf.strings." + name[3:]]
    return names


def record(name: str, args: tuple[Any, ...], kwargs: dict[str, Any], layer: object = None) -> Any:
    """Note a call of a public function: its columns, one for each result."""
    rule = find(name)
    if rule is None:
        raise AttributeError(f"tundish has no {name}: see `python -m tundish.data.table`")
    spec = rule.infer(rule.bind(args, kwargs))
    call = Call(rule.name, args, dict(kwargs), caller(), spec, layer)
    return results(call)


def results(call: Call) -> Any:
    """The columns of a call: one, or a dict or list of them."""
    spec = call.spec
    if isinstance(spec, dict):
        return {key: Column(call, each, index=key) for key, each in spec.items()}
    if isinstance(spec, list):
        return [Column(call, each, index=i) for i, each in enumerate(spec)]
    return Column(call, spec if isinstance(spec, Spec) else Spec())
