"""The one run of a user's function: TensorFlow traces it, and the calls in it are recorded."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.autograph.core import ag_ctx
from tensorflow.python.autograph.impl import api as autograph
from tensorflow.python.framework import func_graph

from . import origin
from .calls import Call, Opaque, Path, Problem, Traced, Value, is_feature, map_leaves
from .constants import fold, is_constant
from .proxy import Proxy, is_proxy, real

_local = threading.local()

NO_ASSERT = "a row for which it is false is an error of TensorFlow's, and is delivered here"
# TensorFlow makes these for itself: what goes in and out of a function, and constants.
_PLUMBING = frozenset(("Placeholder", "Const", "Identity", "NoOp", "IdentityN"))


def current() -> Trace | None:
    """The trace that this thread is in."""
    return getattr(_local, "trace", None)


class Trace:
    """One function of the user, while it runs.

    Every operation that TensorFlow makes meanwhile must have come from a recorded call: what did not is
    a problem, so that nothing is lost without a word.
    """

    def __init__(self, traced: Traced) -> None:
        self.traced = traced
        self.depth: int = 1 if (outer := current()) is None else outer.depth + 1
        self.busy = False
        self._graph = tf.compat.v1.get_default_graph()
        self._accounted = {op.name for op in self._operations()}  # tf.data made them

    def call(
        self, name: str, function: Callable[..., Any], args: Any, kwargs: Any, owner: Any = None
    ) -> Any:
        """Call a public function, and record it. owner: the description of the object it is a method of,
        which is recorded as its first argument."""
        nearest = current()
        if nearest is not None and nearest is not self:  # of a column of an outer function
            return nearest.call(name, function, args, kwargs, owner)
        if self.busy:  # a function that a recorded one calls back
            return function(*real(args), **real(kwargs))
        where = origin.here()
        with self.accounting():
            result = function(*real(args), **real(kwargs))
        return self.record(name, args if owner is None else (owner, *args), kwargs, where, result)

    @contextlib.contextmanager
    def accounting(self) -> Iterator[None]:
        """Everything that TensorFlow makes meanwhile belongs to the call that is recorded, and only to it."""
        before = len(self._operations())
        self.busy = True
        try:
            yield
        finally:
            self.busy = False
            self._accounted.update(op.name for op in self._operations()[before:])

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        """A branch, with a graph of its own: its calls are recorded as well."""
        outer, accounted, busy = self._graph, self._accounted, self.busy
        self._graph, self._accounted, self.busy = tf.compat.v1.get_default_graph(), set(), False
        try:
            yield
            self._check()
        finally:
            self._graph, self._accounted, self.busy = outer, accounted, busy

    @contextlib.contextmanager
    def discarding(self) -> Iterator[None]:
        """Nothing that is made meanwhile is in a graph that will run."""
        busy, self.busy = self.busy, True
        try:
            with func_graph.FuncGraph("discarded").as_default():
                yield
        finally:
            self.busy = busy

    def inline(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Run a function as a part of this one."""
        return autograph.tf_convert(function, ag_ctx.control_status_ctx())(*args, **kwargs)

    def record(self, name: str, args: Any, kwargs: Any, where: origin.Origin, result: Any) -> Any:
        call = Call(name, argument(args), argument(kwargs), where)
        wrapped = self.wrapped(call, result)
        if not call.specs and isinstance(result, tf.Operation):
            self._without_column(name, where)
        return wrapped

    def wrapped(self, call: Call, result: Any) -> Any:
        """The result of a call, with proxies for tensors."""
        return map_leaves(lambda path, leaf: self._wrapped(call, path, leaf), result)

    def _wrapped(self, call: Call, path: Path, leaf: Any) -> Any:
        if not tf.is_tensor(leaf) or isinstance(leaf, tf.Variable):
            return leaf
        call.specs[path] = _spec(leaf)
        # Before it has learned, tf.Transform gives stand-ins.
        is_real = isinstance(leaf, tf.Tensor) and not call.name.startswith("tft.")
        known = fold(leaf) if is_real else None
        return Proxy(leaf, Value(call, path) if known is None else _constant(known), self)

    def input(self, index: int, nest: Any) -> Any:
        """The argument of the function with that number."""
        call = Call("input", (index,), {}, self.traced.origin)
        return map_leaves(lambda path, leaf: self._wrapped(call, path, leaf), nest)

    def set_shape(self, proxy: Proxy, shape: Any) -> None:
        """A tensor's set_shape changes the tensor itself."""
        proxy.tensor.set_shape(real(shape))
        if not self.busy:
            call = Call("tundish.set_shape", (proxy.value, argument(shape)), {}, origin.here())
            call.specs[()] = _spec(proxy.tensor)
            proxy.value = Value(call, ())

    def problem(self, name: str, why: str, remedy: str, where: origin.Origin | None = None) -> None:
        self.traced.problems.append(Problem(where or origin.here(), name, why, remedy))

    def left_out(self, name: str, what: str, where: origin.Origin | None = None) -> None:
        """A note: a call that changes no column is not in the pipeline file."""
        file, line = where or origin.here()
        self.traced.notes.append(f"{os.path.basename(file)}:{line}: {name} is left out: {what}")

    def _without_column(self, name: str, where: origin.Origin) -> None:
        last = name.rpartition(".")[2]
        if last.lower().startswith("assert"):
            self.left_out(name, NO_ASSERT, where)
        elif last == "print":
            self.left_out(name, "a server prints nothing", where)
        else:
            self.problem(name, "it gives no column", "remove it", where)

    def finish(self, result: Any) -> Any:
        """Keep what the function gave; what TensorFlow is to get."""
        self.traced.result = argument(result)
        self._check()
        return real(result)

    def _check(self) -> None:
        """A problem for each line that made operations which no recorded call did."""
        found: dict[origin.Origin, dict[str, None]] = {}
        for op in self._operations():
            self.traced.operations.add(op.type)
            if op.type not in _PLUMBING and op.name not in self._accounted and not is_constant(op):
                found.setdefault(self._where(op), {})[op.type] = None
        for where, types in found.items():
            reads = "ReadVariableOp" in types
            self.problem(
                f"operation{'s' if len(types) > 1 else ''} {', '.join(types)}",
                "it reads a variable" if reads else "it is not made by a public function of TensorFlow on a column",
                "take its value outside of the function: v.numpy()" if reads else "call a function of tf.* instead",
                where,
            )

    def _where(self, op: Any) -> origin.Origin:
        frames = (frame for frame in reversed(op.traceback) if origin.is_users(frame.filename))
        return next(((frame.filename, int(frame.lineno)) for frame in frames), self.traced.origin)

    def _operations(self) -> list[Any]:
        operations: list[Any] = self._graph.get_operations()
        return operations


def trace(function: Callable[..., Any], traced: Traced) -> Callable[..., Any]:
    """The function for tf.data to call, once, instead of the user's."""
    context = ag_ctx.control_status_ctx()
    traced.function = function

    def run(*arguments: Any) -> Any:
        outer = current()
        mine = Trace(traced)
        _local.trace = mine
        try:
            traced.inputs = tuple(mine.input(i, nest) for i, nest in enumerate(arguments))
            given = traced.inputs
            traced.inputs = argument(given)
            converted = autograph.tf_convert(function, context)
            return mine.finish(_watched(traced, function, lambda: converted(*given)))
        finally:
            _local.trace = outer

    unconverted: Callable[..., Any] = autograph.do_not_convert(run)
    return unconverted


def _watched(traced: Traced, function: Any, run: Callable[[], Any]) -> Any:
    """Run it, and note which variables it had for columns when it returned."""
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    name = getattr(function, "__name__", None)
    previous = sys.getprofile()

    def watch(frame: Any, event: str, _: Any) -> None:
        if event == "return" and (frame.f_code is code or frame.f_code.co_name == f"tf__{name}"):
            found = [(value.value, key) for key, value in frame.f_locals.items() if is_proxy(value)]
            traced.variables += [(value, key) for value, key in found if isinstance(value, Value)]

    sys.setprofile(watch)
    try:
        return run()
    finally:
        sys.setprofile(previous)


def _spec(tensor: Any) -> Any:
    return tf.type_spec_from_value(tensor)


def argument(nest: Any) -> Any:
    """A nest as the record keeps it: Values, constants, and what is neither as it is."""
    if isinstance(nest, slice):
        return slice(argument(nest.start), argument(nest.stop), argument(nest.step))
    if isinstance(nest, (dict, list, tuple)) and not is_feature(nest):
        return map_leaves(lambda _, leaf: argument(leaf), nest)
    if is_proxy(nest):
        return nest.value  # pyright: ignore[reportAttributeAccessIssue]
    if isinstance(nest, tf.Variable):
        return Opaque(f"the variable {nest.name}")
    if isinstance(nest, (tf.RaggedTensor, tf.SparseTensor)):
        return Opaque("a ragged or sparse tensor made outside of the function", "read its rows from a file, as lists")
    if tf.is_tensor(nest):
        known = fold(nest)
        return Opaque("a tensor of another function") if known is None else _constant(known)
    if isinstance(nest, tf.TensorShape):
        return nest.as_list() if nest.rank is not None else None
    return nest


def _constant(known: Any) -> Any:
    return known if isinstance(known, np.ndarray) and known.ndim else np.asarray(known)[()]


