"""The user's program: imported with TensorFlow patched, and its function called."""

from __future__ import annotations

import ast
import contextlib
import importlib
import importlib.util
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from . import origin
from .datasets import Draws
from .report import relative


_LONGEST_S = 600


class ProgramFailed(Exception):
    """The user's program raised, or did what a function that makes datasets does not do. was_raised: it
    raised, on its own or because of what stands for TensorFlow's objects."""

    def __init__(self, text: str, was_raised: bool = False) -> None:
        super().__init__(text)
        self.was_raised = was_raised


def arguments(words: list[str]) -> tuple[list[Any], dict[str, Any]]:
    """The values of --args: Python values, or texts; NAME=VALUE by name."""
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if equals and name.isidentifier():
            named[name] = _value(value)
        else:
            positional.append(_value(word))
    return positional, named


def _value(word: str) -> Any:
    try:
        return ast.literal_eval(word)
    except (ValueError, SyntaxError):
        return word


@dataclass
class Made:
    """The result of the program's function, the function, and how to call it again as if for the first time;
    None if it is not a function."""

    result: Any
    function: Any
    again: Callable[[], Any] | None = None


def run(target: str, words: list[str]) -> Made:
    """Import MODULE, and call its FUNCTION, or take it if it is a dataset. Raises ProgramFailed."""
    with telling():
        found = _found(target)
        if not callable(found):
            return Made(found, found)
        positional, named = arguments(words)
        before = _state()

        def again() -> Any:
            _go_back(before)
            with _running():
                return found(*positional, **named)

        return Made(found(*positional, **named), found, again)


def function(target: str) -> Any:
    """Import MODULE: its FUNCTION. Raises ProgramFailed."""
    with telling():
        return _found(target)


def _found(target: str) -> Any:
    module_name, colon, name = target.partition(":")
    if not colon or not module_name or not name:
        raise ProgramFailed(f"{target!r} is not MODULE:FUNCTION, as input.py:make_dataset")
    found: Any = _module(module_name)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _module(name: str) -> ModuleType:
    if not name.endswith(".py") and os.sep not in name:
        sys.path.insert(0, os.getcwd())
        return importlib.import_module(name)
    path = os.path.abspath(name)
    sys.path.insert(0, os.path.dirname(path))
    stem = os.path.basename(path).removesuffix(".py")
    spec = importlib.util.spec_from_file_location(stem, path)
    if spec is None or spec.loader is None:
        raise ProgramFailed(f"{name}: no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[stem] = module
    spec.loader.exec_module(module)
    return module


def _said(error: BaseException) -> str:
    """The line of the program on which it failed, and the last line of the error."""
    raised = origin.raised(error)
    where = f"{relative(raised[0])}:{raised[1]}: " if raised is not None else ""
    text = str(error).strip()
    return f"{where}{type(error).__name__}: {text}" if text else f"{where}{type(error).__name__}"


def _state() -> Any:
    """Where generators stand that a program may draw from."""
    return Draws.state(), random.getstate(), np.random.get_state(legacy=False)


def _go_back(state: Any) -> None:
    drawn, python, numpy = state
    Draws.go_back(drawn)
    random.setstate(python)
    np.random.set_state(numpy)


@contextlib.contextmanager
def telling() -> Iterator[None]:
    """An exception of the program's code becomes ProgramFailed, with its line."""
    with _running():
        try:
            yield
        except ProgramFailed:
            raise
        except (Exception, SystemExit) as error:
            raise ProgramFailed(_said(error), was_raised=True) from error


def runs_without(target: str, words: list[str]) -> bool:
    """Whether the program runs in a process in which nothing stands for TensorFlow's objects."""
    command = [sys.executable, "-c", f"import sys; from {__name__} import main; sys.exit(main(sys.argv[1:]))"]
    try:
        done = subprocess.run([*command, target, *words], capture_output=True, timeout=_LONGEST_S)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def main(words: list[str]) -> int:
    """Run the program's function, and nothing else: 1 if it raises."""
    Draws.begin(fills=False)
    try:
        run(words[0], words[1:])
    except ProgramFailed as error:
        return int(error.was_raised)
    return 0


@contextlib.contextmanager
def _running() -> Iterator[None]:
    with _guarded(), contextlib.redirect_stdout(sys.stderr):
        yield


@contextlib.contextmanager
def _guarded() -> Iterator[None]:
    """While the program runs, it cannot train: a port would take as long as the training."""
    import keras

    guarded = [(keras.Model, name) for name in ("fit", "evaluate", "predict", "train_on_batch")]
    guarded += [(keras.optimizers.Optimizer, name) for name in ("apply", "apply_gradients")]
    plain = [getattr(owner, name) for owner, name in guarded]
    for owner, name in guarded:
        setattr(owner, name, _refusing(name))
    try:
        yield
    finally:
        for (owner, name), function in zip(guarded, plain, strict=True):
            setattr(owner, name, function)


def _refusing(name: str) -> Any:
    def refuse(*_: Any, **__: Any) -> Any:
        file, line = origin.here()
        raise ProgramFailed(
            f"{relative(file)}:{line}: the program trains ({name}) while it is imported or called: name a "
            "function that only makes datasets, and put the training under if __name__ == '__main__'"
        )

    return refuse
