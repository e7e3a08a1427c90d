"""A case's program: NAME.py, which stands beside NAME.yaml and makes the same data set with TensorFlow.

Its docstring is the case's `about`. It defines `dataset()`, or `dataset(worker)` with WORKERS, and may
define what a case may have: EPOCHS, MAX_STEPS, TOLERANCE, MESSAGE_HAS, COLUMNS, and `artifacts()`.
"""

import ast
import importlib.util
import inspect
import sys
from dataclasses import dataclass

# What a program says with a constant, and what holds without it.
CONSTANTS = {"WORKERS": 1, "EPOCHS": 1, "MAX_STEPS": None, "TOLERANCE": {}, "MESSAGE_HAS": [], "COLUMNS": None}


class BadProgram(Exception):
    """The program does not say what a case needs."""


@dataclass(frozen=True)
class Program:
    about: str
    call: str
    make: object  # takes a worker's number, returns its data set
    artifacts: object  # a function, or None
    workers: int
    epochs: int
    max_steps: int | None
    tolerance: dict
    message_has: list
    columns: tuple | None


def load(path):
    module = _imported(path)
    strange = [name for name in vars(module) if name.isupper() and name not in CONSTANTS]
    if strange:
        raise BadProgram(f"{path}: {', '.join(strange)} is not one of {', '.join(CONSTANTS)}")
    if not module.__doc__:
        raise BadProgram(f"{path}: its docstring must say in one sentence what the case is about")
    if not callable(getattr(module, "dataset", None)):
        raise BadProgram(f"{path}: it must define dataset(), which returns a tf.data.Dataset")
    values = {name.lower(): getattr(module, name, default) for name, default in CONSTANTS.items()}
    return Program(
        about=" ".join(module.__doc__.split()),
        call=_call(module.dataset),
        make=_of_worker(module.dataset),
        artifacts=getattr(module, "artifacts", None),
        **values,
    )


def _imported(path):
    spec = importlib.util.spec_from_file_location(f"case_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where AutoGraph looks for a function's globals
    spec.loader.exec_module(module)
    return module


def _of_worker(function):
    return function if inspect.signature(function).parameters else lambda worker: function()


def _call(function):
    """The body of a function in one line; of one that only returns, what it returns."""
    body = ast.parse(inspect.getsource(function)).body[0].body
    lines = [ast.unparse(line) for line in body]
    return "; ".join(line.removeprefix("return ") for line in lines)
