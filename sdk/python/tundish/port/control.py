"""Python's own statements and operators on columns, where AutoGraph has made them TensorFlow's."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any

import tensorflow as tf
from tensorflow.python.autograph import operators
from tensorflow.python.autograph.core import config
from tensorflow.python.autograph.operators import py_builtins
from tensorflow.python.ops import cond as tf_cond

from . import origin
from .calls import map_leaves
from .proxy import Proxy, has_proxy, is_proxy, real
from .tracing import NO_ASSERT, Trace, argument, current

_LOOP = "a Python loop over a column"
_LOOP_REMEDY = "write it with functions of tf.* on the whole column, or as an `op:` of your own"


def patch() -> None:
    config.CONVERSION_RULES = (config.DoNotConvert("tundish"), *config.CONVERSION_RULES)
    statements: dict[str, Callable[..., Any]] = {
        "if_stmt": _if_stmt,
        "if_exp": _if_exp,
        "while_stmt": _while_stmt,
        "for_stmt": _for_stmt,
        "and_": _and,
        "or_": _or,
        "not_": _not,
        "assert_stmt": _assert_stmt,
    }
    for name, function in statements.items():
        setattr(operators, name, _for_proxies(getattr(operators, name), function))
    builtins: dict[str, Callable[..., Any]] = {"int": _int, "float": _float, "len": _len, "range": _range}
    for builtin, function in builtins.items():
        name = builtin + "_"
        replaced = _for_proxies(getattr(py_builtins, name), function)
        setattr(py_builtins, name, replaced)
        if hasattr(operators, name):
            setattr(operators, name, replaced)
        py_builtins.BUILTIN_FUNCTIONS_MAP[builtin] = replaced
    for name, made in (("cond", _cond), ("case", _case), ("switch_case", _switch_case)):
        _replace(name, made)


def _replace(name: str, made: Callable[..., Any]) -> None:
    plain = getattr(tf, name)
    chosen = made(plain)
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith("tensorflow") and vars(module).get(name) is plain:
            setattr(module, name, chosen)


def _for_proxies(plain: Callable[..., Any], function: Callable[..., Any]) -> Callable[..., Any]:
    def chosen(*args: Any, **kwargs: Any) -> Any:
        trace = current()
        if trace is None:
            return plain(*args, **kwargs)
        return function(trace, plain, *args, **kwargs)

    return chosen


def _cond(plain: Callable[..., Any]) -> Callable[..., Any]:
    """tf.cond, whose branches are functions."""
    signature = inspect.signature(plain)

    @functools.wraps(plain)
    def chosen(*args: Any, **kwargs: Any) -> Any:
        trace, given = current(), signature.bind(*args, **kwargs).arguments
        pred: Any = given.get("pred")
        if trace is None:
            return plain(*args, **kwargs)
        if trace.busy:
            return plain(*real(args), **real(kwargs))
        if is_proxy(pred):
            return choose(trace, pred, given["true_fn"], given["false_fn"])
        known = tf.get_static_value(pred) if tf.is_tensor(pred) else pred
        if known is None:
            return plain(*args, **kwargs)
        return trace.inline(given["true_fn"] if known else given["false_fn"], (), {})

    return chosen


def _case(plain: Callable[..., Any]) -> Callable[..., Any]:
    """tf.case: the first of several conditions that is true, and a default."""
    signature = inspect.signature(plain)

    @functools.wraps(plain)
    def chosen(*args: Any, **kwargs: Any) -> Any:
        trace, given = current(), signature.bind(*args, **kwargs).arguments
        pairs: list[Any] = list(given.get("pred_fn_pairs", ()))
        if trace is None or trace.busy or given.get("default") is None or not all(is_proxy(p) for p, _ in pairs):
            return plain(*args, **kwargs)
        return _first(trace, pairs, given["default"])

    return chosen


def _switch_case(plain: Callable[..., Any]) -> Callable[..., Any]:
    """tf.switch_case: a function by its number; of other numbers the default, else the last."""
    signature = inspect.signature(plain)

    @functools.wraps(plain)
    def chosen(*args: Any, **kwargs: Any) -> Any:
        trace, given = current(), signature.bind(*args, **kwargs).arguments
        index: Any = given.get("branch_index")
        if trace is None or trace.busy or not is_proxy(index):
            return plain(*args, **kwargs)
        branches: Any = given["branch_fns"]
        if not isinstance(branches, dict):
            branches = dict(branches if isinstance(branches[0], tuple) else enumerate(branches))
        numbers = sorted(branches)
        default = given.get("default") or branches[numbers[-1]]
        return _first(trace, [(tf.equal(index, number), branches[number]) for number in numbers], default)

    return chosen


def _first(trace: Trace, pairs: list[Any], default: Callable[[], Any]) -> Any:
    if not pairs:
        return trace.inline(default, (), {})
    (pred, function), *others = pairs
    return choose(trace, pred, function, lambda: _first(trace, others, default))


def _if_exp(trace: Trace, plain: Any, cond: Any, if_true: Any, if_false: Any, text: str) -> Any:
    if not is_proxy(cond):
        return plain(cond, if_true, if_false, text)
    if trace.busy:
        return plain(cond.tensor, lambda: real(if_true()), lambda: real(if_false()), text)
    return choose(trace, cond, if_true, if_false)


def choose(trace: Trace, cond: Proxy, if_true: Callable[[], Any], if_false: Callable[[], Any]) -> Any:
    """tf.cond: each branch runs once, in a graph of its own, and its calls are recorded."""
    where, given = origin.here(), {}

    def branch(which: bool, function: Callable[[], Any]) -> Callable[[], Any]:
        def run() -> Any:
            with trace.inside():
                result = function()
                given[which] = argument(result)
                return real(result)

        return run

    with trace.accounting():
        result = tf_cond.cond(cond.tensor, branch(True, if_true), branch(False, if_false))
    return _chosen(trace, cond, (given[True], given[False]), where, result)


def _chosen(trace: Trace, cond: Proxy, given: tuple[Any, Any], where: origin.Origin, result: Any) -> Any:
    """A choice for each value of a nest. given: what the branches gave."""

    def leaf(path: Any, value: Any) -> Any:
        return trace.record("tf.cond", (cond, *(_at(each, path) for each in given)), {}, where, value)

    return map_leaves(leaf, result)


def _at(nest: Any, path: Any) -> Any:
    """The value at a place of a nest. TensorFlow gives a list of one value as that value."""
    for key in path:
        nest = nest[key]
    return nest[0] if isinstance(nest, (list, tuple)) and len(nest) == 1 else nest


def _if_stmt(
    trace: Trace, plain: Any, cond: Any, body: Any, orelse: Any, get: Any, put: Any, names: Any, nouts: int
) -> Any:
    if not is_proxy(cond):
        return plain(cond, body, orelse, get, put, names, nouts)
    state = _State(get, put)
    if trace.busy:
        return plain(cond.tensor, body, orelse, state.get, state.put, names, nouts)
    where, given = origin.here(), {}

    def branch(which: bool, function: Callable[[], Any]) -> Callable[[], Any]:
        def run() -> None:
            with trace.inside():
                function()
                given[which] = argument(get())

        return run

    with trace.accounting():
        plain(cond.tensor, branch(True, body), branch(False, orelse), state.get, state.put, names, nouts)
    put(
        tuple(
            _chosen(trace, cond, (yes, no), where, value)
            for yes, no, value in zip(given[True], given[False], real(get()), strict=True)
        )
    )
    return None


class _State:
    """The variables of a statement, as AutoGraph hands them over: tensors outside, proxies inside."""

    def __init__(self, get: Callable[[], Any], put: Callable[[Any], None]) -> None:
        self._get, self._put = get, put
        self._proxies: dict[int, Proxy] = {}

    def get(self) -> Any:
        def keep(_: Any, leaf: Any) -> Any:
            if is_proxy(leaf):
                self._proxies[id(leaf.tensor)] = leaf
                return leaf.tensor
            return leaf

        return map_leaves(keep, self._get())

    def put(self, values: Any) -> None:
        self._put(map_leaves(lambda _, leaf: self._proxies.get(id(leaf), leaf), values))


def _loop(trace: Trace, run: Callable[[_State], None], get: Any, put: Any) -> None:
    """Let TensorFlow make the loop. Its result has no rule in Tundish."""
    where, before = origin.here(), argument(get())
    state = _State(get, put)
    with trace.accounting():
        run(state)
    trace.problem(_LOOP, "each element would have another number of steps", _LOOP_REMEDY, where)
    put(
        tuple(
            trace.record(_LOOP, (old,), {}, where, new)
            for old, new in zip(before, real(get()), strict=True)
        )
    )


def _while_stmt(
    trace: Trace, plain: Any, test: Any, body: Any, get: Any, put: Any, names: Any, opts: Any
) -> Any:
    with trace.discarding():
        tested = test()
    if not (is_proxy(tested) or tf.is_tensor(tested)):
        return plain(test, body, get, put, names, opts)
    if trace.busy:
        state = _State(get, put)
        return plain(lambda: real(test()), body, state.get, state.put, names, opts)
    return _loop(
        trace, lambda s: plain(lambda: real(test()), body, s.get, s.put, names, opts), get, put
    )


def _for_stmt(
    trace: Trace, plain: Any, over: Any, extra: Any, body: Any, get: Any, put: Any, names: Any, opts: Any
) -> Any:
    if not is_proxy(over):
        return plain(over, extra, body, get, put, names, opts)
    also = None if extra is None else lambda: real(extra())
    if trace.busy:
        state = _State(get, put)
        return plain(over.tensor, also, body, state.get, state.put, names, opts)
    return _loop(
        trace, lambda s: plain(over.tensor, also, body, s.get, s.put, names, opts), get, put
    )


def _and(trace: Trace, plain: Any, a: Any, b: Any) -> Any:
    first = a()
    return tf.logical_and(first, b()) if is_proxy(first) else plain(lambda: first, b)


def _or(trace: Trace, plain: Any, a: Any, b: Any) -> Any:
    first = a()
    return tf.logical_or(first, b()) if is_proxy(first) else plain(lambda: first, b)


def _not(trace: Trace, plain: Any, a: Any) -> Any:
    return tf.logical_not(a) if is_proxy(a) else plain(a)


def _assert_stmt(trace: Trace, plain: Any, condition: Any, message: Any) -> Any:
    if not is_proxy(condition):
        return plain(condition, message)
    trace.left_out("assert", NO_ASSERT)
    with trace.accounting():
        return plain(condition.tensor, lambda: real(message()))


def _int(trace: Trace, plain: Any, x: Any = 0, base: Any = py_builtins.UNSPECIFIED) -> Any:
    if not is_proxy(x):
        return plain(x, base)
    return tf.strings.to_number(x, tf.int32) if x.dtype == tf.string else tf.cast(x, tf.int32)


def _float(trace: Trace, plain: Any, x: Any = 0) -> Any:
    if not is_proxy(x):
        return plain(x)
    return tf.strings.to_number(x, tf.float32) if x.dtype == tf.string else tf.cast(x, tf.float32)


def _len(trace: Trace, plain: Any, s: Any) -> Any:
    if not is_proxy(s):
        return plain(s)
    shape = s.tensor.shape
    if shape.rank and shape[0] is not None:
        return shape[0]
    return tf.shape(s)[0]


def _range(trace: Trace, plain: Any, *limits: Any) -> Any:
    return tf.range(*limits) if has_proxy(limits) else plain(*limits)

