"""The public names of TensorFlow that a traced function may call."""

from __future__ import annotations

import inspect
from typing import Any

from . import lookup, seeds
from .dtypes import DTYPES, DType
from .lowering import RULES, find, parsing, record
from .lowering.rule import Rule

__all__ = ["Layer", "Namespace", "Recorder"]


def _cond(pred: Any, true_fn: Any = None, false_fn: Any = None, name: str | None = None) -> Any:
    """Both branches are computed, and one is taken."""
    branches = [branch() if callable(branch) else branch for branch in (true_fn, false_fn)]
    return record("tf.cond", (pred, *branches), {})


_OTHERS: dict[str, Any] = {
    **{f"tf.{dtype}": DType(dtype) for dtype in DTYPES},
    **{f"tf.io.{name}": getattr(parsing, name) for name in parsing.__all__ if name != "RULES"},
    **{f"tf.lookup.{name}": getattr(lookup, name) for name in lookup.__all__},
    "tf.cond": _cond,
    "tf.newaxis": None,
    "tf.function": lambda function=None, **_: function or (lambda decorated: decorated),
    "tf.random.set_seed": seeds.set_seed,
}


class Namespace:
    """A prefix of public names, as `tf.io`."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def __getattr__(self, name: str) -> Any:
        full = f"{self._prefix}.{name}"
        if full in _OTHERS:
            return _OTHERS[full]
        if full == "tf.data":
            from importlib import import_module

            return import_module("tundish.data")
        if full not in RULES and any(known.startswith(full + ".") for known in (*RULES, *_OTHERS)):
            return Namespace(full)
        rule = find(full)
        if rule is None:
            raise AttributeError(
                f"tundish has no {full}: `python -m tundish.data.table` lists what there is; write the stage by"
                " hand, as `op:` or `program:`, for code of your own"
            )
        return Layer.of(rule) if rule.name.startswith("tf.keras.layers.") else Recorder(rule)

    def __dir__(self) -> list[str]:
        prefix = self._prefix + "."
        names = [name.removeprefix(prefix) for name in (*RULES, *_OTHERS) if name.startswith(prefix)]
        return sorted({name.partition(".")[0] for name in names})


class Recorder:
    """A public function: a call of it is noted, not run."""

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self.__name__ = rule.name
        self.__doc__ = f"{rule.of}\n\nIn a pipeline file: {rule.says}."
        self.__signature__ = rule.signature

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return record(self._rule.name, args, kwargs)

    def __repr__(self) -> str:
        return f"<tundish recorder of {self._rule.of}>"


class Layer:
    """A Keras layer: its arguments, until it is called on columns."""

    _rule: Rule

    @staticmethod
    def of(rule: Rule) -> type[Layer]:
        """The class of a layer."""
        name = rule.name.rpartition(".")[2]
        return type(
            name, (Layer,), {"_rule": rule, "__doc__": f"{rule.of}\n\nIn a pipeline file: {rule.says}."}
        )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        parameters = list(self._rule.signature.parameters.values())[1:]
        signature = inspect.Signature(parameters)
        try:
            self.config = dict(signature.bind(*args, **kwargs).arguments)
        except TypeError as error:
            raise TypeError(f"{type(self).__name__}: {error}; it is {self._rule.of}") from None

    def __call__(self, inputs: Any, **kwargs: Any) -> Any:
        return record(self._rule.name, (inputs,), {**self.config, **kwargs}, self)

    def adapt(self, *_: Any, **__: Any) -> None:
        raise NotImplementedError(
            f"{type(self).__name__}.adapt: leave it out, and `tundish analyze` learns from the stream itself; or give"
            " the layer what it learned (vocabulary=, mean=, variance=, bin_boundaries=)"
        )
