"""Tensors of a function's graph that are the same in each run: what is computed of constants alone."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from tensorflow.python.framework import func_graph, tensor_util

__all__ = ["fold", "is_constant"]


def fold(tensor: Any) -> Any:
    """Its value as numpy has it, or None if that is not the same in each run."""
    known = tensor_util.constant_value(tensor)
    if known is not None or not isinstance(getattr(tensor, "graph", None), func_graph.FuncGraph):
        return known
    if tensor.dtype in (tf.resource, tf.variant) or not is_constant(tensor.op):
        return None
    with tf.compat.v1.Session(graph=tensor.graph) as session:
        return session.run(tensor, {f"{name}:0": outer.numpy() for name, outer in _captured(tensor.graph).items()})


def is_constant(op: Any) -> bool:
    """Whether it computes something, and of constants alone."""
    captured = _captured(op.graph) if isinstance(op.graph, func_graph.FuncGraph) else {}
    known: dict[str, bool] = {}
    waiting = [op]
    while waiting:
        each = waiting[-1]
        inputs = [of.op for of in each.inputs]
        unknown = [of for of in inputs if of.name not in known]
        if each.name in known or each.type in ("Const", "Placeholder") or not unknown:
            known.setdefault(each.name, _is_same(each, captured, [known.get(of.name, False) for of in inputs]))
            waiting.pop()
        else:
            waiting.extend(unknown)
    return known[op.name]


def _is_same(op: Any, captured: dict[str, Any], of_inputs: list[bool]) -> bool:
    if op.type in ("Const", "Placeholder"):
        return op.type == "Const" or op.name in captured
    return bool(of_inputs) and all(of_inputs) and not op.op_def.is_stateful and not op.control_inputs


def _captured(graph: Any) -> dict[str, Any]:
    """Tensors that have their values already, by the names of the placeholders that stand for them."""
    return {
        inner.op.name: outer
        for outer, inner in graph.captures
        if isinstance(outer, tf.Tensor) and hasattr(outer, "numpy") and outer.dtype not in (tf.resource, tf.variant)
    }
