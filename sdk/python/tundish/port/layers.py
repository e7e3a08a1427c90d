"""Keras' layers, called on columns: which layer, and what it was made with or has learned."""

from __future__ import annotations

import functools
import inspect
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from . import origin
from .calls import Call, Value
from .proxy import has_proxy, is_proxy, real
from .tracing import Trace, argument, current

# Keys of a configuration that name the object and change no value.
_NO_PARAMETERS = ("name", "trainable", "dtype", "vocabulary_size")
# A Sequential of these gives what they give one after the other.
_CHAINED = (
    "CenterCrop", "RandomBrightness", "RandomContrast", "RandomCrop", "RandomFlip", "RandomRotation",
    "RandomTranslation", "RandomZoom", "Rescaling", "Resizing",
)  # fmt: skip


@dataclass(eq=False)
class Layer:
    """A layer with its state: `arguments` are those of its constructor that are not the defaults;
    `learned` names those of them that the program learned with adapt()."""

    name: str
    arguments: dict[str, Any]
    learned: tuple[str, ...]
    object: Any


def patch() -> None:
    seen = set()
    for cls in [keras.Layer, keras.Model, keras.Sequential, *_classes()]:
        for owner in cls.__mro__:
            if "__call__" in vars(owner) and owner not in seen and owner.__module__.startswith("keras"):
                seen.add(owner)
                owner.__call__ = _recording(owner.__call__)
    space = keras.utils.FeatureSpace
    space.__call__ = _whole("tf.keras.utils.FeatureSpace", space.__call__)


def _whole(name: str, function: Any) -> Any:
    """A call that is recorded as one, whatever it calls."""

    @functools.wraps(function)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        trace = current()
        if trace is None:
            return function(self, *args, **kwargs)
        return trace.call(name, functools.partial(function, self), args, kwargs)

    return call


def _classes() -> list[type]:
    return [cls for cls in vars(keras.layers).values() if inspect.isclass(cls)]


def _recording(function: Any) -> Any:
    @functools.wraps(function)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        trace = current()
        if trace is None or not has_proxy((args, kwargs)):
            return function(self, *args, **kwargs)
        if trace.busy or not isinstance(self, keras.Layer):
            return function(self, *(real(args) if trace.busy else args), **real(kwargs))
        return _record(trace, functools.partial(function, self), self, args, kwargs)

    return call


def _record(trace: Trace, function: Any, layer: Any, args: Any, kwargs: Any) -> Any:
    where = origin.here()
    with trace.accounting():
        result = function(*real(args), **real(kwargs))
    if callable(getattr(layer, "_standardize", None)):  # of TextVectorization
        args = (trace.inline(layer._standardize, args, {}),)
    with trace.accounting(), tf.init_scope():  # what a layer has learned is known already
        return _recorded(trace, layer, args, kwargs, where, result)


def _recorded(trace: Trace, layer: Any, args: Any, kwargs: Any, where: origin.Origin, result: Any) -> Any:
    chain = [layer]
    if isinstance(layer, keras.Sequential) and all(type(each).__name__ in _CHAINED for each in layer.layers):
        chain = layer.layers
    for each in chain[:-1]:
        args = (Value(_call(each, args, kwargs, where), ()),)
    last = _call(chain[-1], args, kwargs, where)
    for _ in range(_gained(layer, args, result)):
        last = Call("tf.expand_dims", (Value(last, ()), 0), {}, where)
    return trace.wrapped(last, result)


def _gained(layer: Any, args: Any, result: Any) -> int:
    """How many dimensions Normalization of all values puts before those of its input: it has those of what
    it learned from."""
    if type(layer).__name__ != "Normalization" or layer.axis not in (None, ()) or not is_proxy(args[0]):
        return 0
    own, given = result.shape.rank, args[0].shape.rank
    return 0 if own is None or given is None else own - given


def _call(layer: Any, args: Any, kwargs: Any, where: origin.Origin) -> Call:
    said = {name: value for name, value in kwargs.items() if name != "training" or _draws(layer)}
    described = describe(layer)
    return Call(described.name, (described, *argument(args)), argument(said), where)


def _draws(layer: Any) -> bool:
    return type(layer).__name__.startswith("Random")


def describe(layer: Any) -> Layer:
    cls = type(layer)
    arguments = dict(layer.get_config())
    if callable(arguments.get("standardize")):  # its calls are recorded by themselves
        arguments["standardize"] = None
    learned: list[str] = []
    for name, value in _state(layer).items():
        if arguments.get(name) is None:
            arguments[name] = value
            learned.append(name)
    if arguments.get("bin_boundaries") is not None:  # these said how to learn them
        arguments = {name: value for name, value in arguments.items() if name not in ("num_bins", "epsilon")}
    defaults = inspect.signature(cls.__init__).parameters
    policy = layer.dtype_policy.name
    arguments = {
        name: _plain(value)
        for name, value in arguments.items()
        if name not in _NO_PARAMETERS and not _is_default(defaults, name, value)
    }
    if policy != keras.config.dtype_policy().name:
        arguments["dtype"] = policy
    return Layer(_name(cls), arguments, tuple(learned), layer)


def _name(cls: type) -> str:
    public = getattr(keras.layers, cls.__name__, None)
    return f"tf.keras.layers.{cls.__name__}" if public is cls else f"{cls.__module__}.{cls.__qualname__}"


def _is_default(parameters: Any, name: str, value: Any) -> bool:
    if name == "data_format" and value == keras.config.image_data_format():
        return True
    parameter = parameters.get(name)
    return parameter is not None and type(parameter.default) is type(value) and parameter.default == value


def _state(layer: Any) -> dict[str, Any]:
    """The state that adapt() has learned."""
    kind = type(layer).__name__
    if kind == "Normalization" and layer.input_mean is None and layer.built:
        return {"mean": np.asarray(layer.adapt_mean), "variance": np.asarray(layer.adapt_variance)}
    if kind == "Discretization" and layer.bin_boundaries is not None:
        return {"bin_boundaries": layer.bin_boundaries}
    if kind in ("StringLookup", "IntegerLookup", "TextVectorization"):
        lookup = getattr(layer, "_lookup_layer", layer)
        given = lookup.input_vocabulary
        state = {"vocabulary": given}
        if given is None and lookup.vocabulary_size() > 0:
            state = {"vocabulary": layer.get_vocabulary(include_special_tokens=False)}
        if lookup.output_mode == "tf_idf" and lookup.idf_weights is not None:
            # Before the terms' own is that of unknown ones, after them what pad_to_max_tokens adds.
            end = lookup.vocabulary_size()
            state["idf_weights"] = np.asarray(lookup.idf_weights)[end - len(state["vocabulary"]) : end]
        return state
    return {}


def _plain(value: Any) -> Any:
    """Python's own numbers and texts."""
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, np.str_):
        return str(value)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (list, tuple)):
        return type(value)(map(_plain, value))
    return value
