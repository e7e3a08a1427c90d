"""TensorFlow's public functions tell the trace that is under way when they are called."""

from __future__ import annotations

import functools
import inspect
import sys
from types import ModuleType
from typing import Any

import tensorflow as tf
from tensorflow.python.eager.polymorphic_function import polymorphic_function
from tensorflow.python.util import tf_decorator

from .proxy import has_proxy, real
from .tracing import current

# They compute nothing, or run other functions that are recorded themselves.
_TRANSPARENT = (
    "autograph.", "nest.", "compat.as_", "compat.path", "config.", "debugging.set_log", "dtypes.as_dtype",
    "function", "is_tensor", "type_spec_from_value", "get_static_value", "name_scope", "control_dependencies",
    "init_scope", "device", "data.", "distribute.", "keras.", "train.", "saved_model.", "summary.",
    "errors.", "experimental.", "__internal__.", "test.", "types.", "register_tensor", "broadcast_static",
    "no_gradient", "random.set_seed", "random.get_", "compat.v1.get_default", "compat.v1.logging",
    "compat.v1.gfile", "io.gfile", "feature_column.", "lite.", "load_", "version.", "sysconfig.",
    "executing_eagerly", "inside_function", "lookup.",
)  # fmt: skip
_API = ("tensorflow._api.v2", "tensorflow")
_OPERATORS = "tensorflow._api.v2.__operators__"


def patch() -> None:
    """Put a recording function in the place of each public one, under all its names."""
    made: dict[Any, Any] = {}
    # A function that has a name in version 2 is called by that name.
    for module_name, module in sorted(sys.modules.items(), key=lambda item: (".compat." in item[0], item[0])):
        if not (module_name == "tensorflow" or module_name.startswith("tensorflow._api.v2")):
            continue
        if module_name.startswith(_OPERATORS) or not isinstance(module, ModuleType):
            continue
        for attribute, function in list(vars(module).items()):
            if _is_api(function):
                path = f"{module_name.removeprefix(_API[0]).strip('.')}.{attribute}".lstrip(".")
                name = _public_name(function, path.removeprefix("tensorflow."))
                if not name.startswith(_TRANSPARENT):
                    if function not in made:
                        made[function] = recording("tf." + name, function)
                    setattr(module, attribute, made[function])
    _patch_is_tensor()
    _patch_tf_function()
    _patch_sparse_tensor()


def _is_api(function: Any) -> bool:
    return (
        inspect.isfunction(function)
        and not hasattr(function, "_tundish_real")
        and getattr(function, "__module__", "").startswith("tensorflow.")
    )


def _public_name(function: Any, path: str) -> str:
    """The name that TensorFlow's documentation files the function under: `math.log1p`."""
    names = getattr(tf_decorator.unwrap(function)[1], "_tf_api_names", None)
    if names and not path.startswith(("compat.", "raw_ops.")):
        return str(names[0])
    return path


def recording(name: str, function: Any) -> Any:
    @functools.wraps(function)
    def recording(*args: Any, **kwargs: Any) -> Any:
        trace = current()
        if trace is None or trace.busy and not has_proxy((args, kwargs)):
            return function(*args, **kwargs)
        return trace.call(name, function, args, kwargs)

    recording._tundish_real = function  # type: ignore[attr-defined]
    return recording


def _patch_is_tensor() -> None:
    """A proxy answers for its tensor."""
    for name in ("is_tensor", "get_static_value", "type_spec_from_value"):
        real_function = getattr(tf, name)

        @functools.wraps(real_function)
        def answered(x: Any, *args: Any, real_function: Any = real_function, **kwargs: Any) -> Any:
            return real_function(real(x), *args, **kwargs)

        for module in (tf, sys.modules["tensorflow._api.v2"]):
            setattr(module, name, answered)


def _patch_tf_function() -> None:
    """A tf.function that is called with columns is a part of the function that is traced."""
    cls = polymorphic_function.Function
    real_call = cls.__call__

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        trace = current()
        if trace is None or trace.busy or not has_proxy((args, kwargs)):
            return real_call(self, *args, **kwargs)
        return trace.inline(self.python_function, args, kwargs)

    cls.__call__ = call


def _patch_sparse_tensor() -> None:
    """The constructor of a sparse tensor is a public function, too."""

    def new(cls: Any, *args: Any, **kwargs: Any) -> Any:
        trace = current()
        if trace is None or not has_proxy((args, kwargs)):
            return object.__new__(cls)
        return trace.call("tf.SparseTensor", cls, args, kwargs)

    tf.SparseTensor.__new__ = new
