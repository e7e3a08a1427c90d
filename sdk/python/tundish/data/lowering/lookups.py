"""tf.lookup's tables, by the stages of layers and by expressions; tf.cond."""

from __future__ import annotations

from typing import Any

from ..graph import Column, Spec
from .rule import Bound, Expression, Refused, Rewrite, Rule, refuse
from .specs import constant_spec

__all__ = ["RULES"]

FEW = 32  # entries that an expression may name one by one
# They cannot fail, so that they may be computed for the branch that is not taken, too.
_DIVISIONS = ("tf.math.floordiv", "tf.math.floormod")
_MAY_FAIL = (*_DIVISIONS, "tf.pow", "tundish.slice")


def _do(name: str, *args: Any, **kwargs: Any) -> Any:
    from . import record

    return record(name, args, kwargs)


def _static(keys: Any, table: Any, default_value: Any) -> Any:
    """`string_lookup` and an expression, or `where(x == key, value, ...)`"""
    _check_known(table)
    values, dtype = table.get("values"), table["dtype"]
    if isinstance(table["keys"], str) or values == list(range(len(table["keys"]))):
        index = _index(keys, table, 1)
        number = _do("tf.where", _do("tf.equal", index, 0), _number(default_value, "int64"), index - 1)
        return number if dtype == "int64" else _do("tf.cast", number, dtype)
    if len(table["keys"]) > FEW:
        refuse(f"of more than {FEW} keys the values must be 0, 1, 2, ...", "use a StringLookup layer")
    if dtype not in ("int32", "int64", "float32"):
        refuse(f"the values are {dtype}", "use numbers")
    result = _number(default_value, dtype)
    for key, value in reversed(list(zip(table["keys"], values, strict=True))):
        result = _do("tf.where", _do("tf.equal", keys, key), _number(value, dtype), result)
    return result


def _check_known(table: Any) -> None:
    if table["keys"] is None:
        refuse(
            "only a part of a file is its table", "name a file with a key on each line, or a StringLookup layer"
        )


def _with_buckets(keys: Any, table: Any, num_oov_buckets: Any) -> Any:
    """`string_lookup` with `num_oov_indices`, and an expression"""
    _check_known(table)
    if num_oov_buckets < 1 or table["size"] is None or table["dtype"] != "int64":
        refuse("the size of the vocabulary is not known", "use a StringLookup layer")
    if not isinstance(table["keys"], str) and table["values"] != list(range(len(table["keys"]))):
        refuse("the values are not 0, 1, 2, ...", "use a StringLookup layer")
    index = _index(keys, table, num_oov_buckets)
    beyond = _do("tf.less", index, num_oov_buckets)
    return _do("tf.where", beyond, index + table["size"], index - num_oov_buckets)


def _index(keys: Any, table: Any, num_oov_indices: int) -> Any:
    if not isinstance(keys, Column) or keys.spec.dtype != "string":
        refuse("the keys are not texts", "use an IntegerLookup layer")
    options = {} if num_oov_indices == 1 else {"num_oov_indices": num_oov_indices}
    return _do("tf.keras.layers.StringLookup", keys, vocabulary=table["keys"], **options)


def _number(value: Any, dtype: str) -> Any:
    return _do("tf.cast", value, dtype) if dtype == "int64" else value


def _cond(pred: Any, true_fn: Any, false_fn: Any) -> Any:
    """`where(condition, x, y)`, if both are expressions of one shape that cannot fail"""
    true_fn, false_fn = _given(true_fn), _given(false_fn)
    shapes = {constant_spec(value).shape for value in (true_fn, false_fn)}
    if len(shapes) != 1 or any(shape is None or None in shape for shape in shapes):
        refuse("the branches are not known to have one shape", "use tf.where")
    for value in (true_fn, false_fn):
        _check_total(value)
    return _do("tf.where", pred, true_fn, false_fn)


def _given(branch: Any) -> Any:
    """The result of a branch, which is a function in a program."""
    value = branch() if callable(branch) else branch
    if isinstance(value, (tuple, dict)):
        refuse("its branches give several values", "choose each of them by a tf.cond of its own")
    return value


def _check_total(value: Any) -> None:
    from . import find

    if isinstance(value, (list, tuple)):
        for each in value:
            _check_total(each)
    if not isinstance(value, Column) or value.call is None:
        return
    rule = find(value.call.name)
    if isinstance(rule, Rewrite):
        made = rule.into(**rule.without_ignored(rule.bind(value.call.args, value.call.kwargs)))
        _check_total(made if value.index is None else made[value.index])
        return
    if not isinstance(rule, Expression) or rule.name in _MAY_FAIL and not _is_divided(rule, value.call):
        refuse(f"both branches would compute {value.call.name}", "use tf.where of what cannot fail")
    for each in (*value.call.args, *value.call.kwargs.values()):
        _check_total(each)


def _is_divided(rule: Rule, call: Any) -> bool:
    """Whether it is a division by a positive constant."""
    by = rule.bind(call.args, call.kwargs).get("y")
    return rule.name in _DIVISIONS and isinstance(by, (int, float)) and by > 0


def _numbers(bound: Bound) -> Spec:
    spec = bound["keys"].spec
    return Spec(bound["table"]["dtype"], spec.shape, spec.kind)


def _chosen(bound: Bound) -> Spec:
    try:
        values = [_given(bound[name]) for name in ("true_fn", "false_fn")]
    except Refused:
        return Spec()
    return next((value.spec for value in values if isinstance(value, Column)), constant_spec(values[0]))


RULES: list[Rule] = [
    Rewrite("tf.lookup.StaticHashTable.lookup(keys, table, default_value)", _numbers, into=_static),
    Rewrite("tf.lookup.StaticVocabularyTable.lookup(keys, table, num_oov_buckets)", _numbers, into=_with_buckets),
    Rewrite("tf.cond(pred, true_fn, false_fn, name=None)", _chosen, into=_cond),
]
