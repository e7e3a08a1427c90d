"""Which line of the user's program is running now."""

from __future__ import annotations

import abc
import os
import sys
import traceback
from types import FrameType

import keras
import tensorflow as tf
from tensorflow.python.autograph.impl import api as autograph
from tensorflow.python.util import tf_stack

Origin = tuple[str, int]

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_libraries = tuple(
    os.path.join(folder, "")
    for folder in (
        os.path.dirname(os.path.abspath(tf.__file__)),
        os.path.dirname(os.path.abspath(keras.__file__)),
        _PACKAGE,
        os.path.realpath(_PACKAGE),
        os.path.dirname(os.path.abspath(os.__file__)),  # Python's own modules
    )
)
# AutoGraph calls Python's builtins for the user.
_AUTOGRAPH = str(autograph.__file__)
_CALLS = ("converted_call", "_call_unconverted", "_py_builtin")
_ABSTRACT = ("<frozen abc>", str(abc.__file__))
_SITE = os.sep + "site-packages" + os.sep


def add_library(folder: str) -> None:
    """The code in this folder is not the user's either."""
    global _libraries
    _libraries = (os.path.join(folder, ""), *_libraries)


def here() -> Origin:
    """File and line of the innermost frame that is not a library's. Code that AutoGraph has rewritten
    counts as the code that it was written as."""
    for frame in reversed(tf_stack.extract_stack()):
        if is_users(frame.filename):
            return os.path.abspath(frame.filename), int(frame.lineno)
    return "<program>", 0


def raised(error: BaseException) -> Origin | None:
    """The line of the user's program on which it failed."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if is_users(frame.filename)]
    return (os.path.abspath(frames[-1].filename), frames[-1].lineno or 0) if frames else None


def is_users(file: str) -> bool:
    """Whether a file is part of the user's program: not of TensorFlow, Keras, Python or this package."""
    if file.startswith("<") and not file.startswith("<ipython") or "__autograph_generated_file" in file:
        return False
    path = os.path.abspath(file)
    # Other libraries of the environment lie in the folder of Python's own modules, and may well be
    # the program.
    return not path.startswith(_libraries) or (
        _SITE in path and not path.startswith(_libraries[:-1])
    )


def asked_by_user(frame: FrameType | None) -> bool:
    """Whether this frame is of the user's program, as it is or rewritten by AutoGraph."""
    while frame is not None and frame.f_code.co_filename in _ABSTRACT:
        frame = frame.f_back  # isinstance of an abstract class
    if frame is None:
        return False
    if "__autograph_generated_file" in frame.f_code.co_filename:
        return True
    file = frame.f_code.co_filename
    return is_users(file) or file == _AUTOGRAPH and frame.f_code.co_name in _CALLS


def caller() -> FrameType | None:
    """The frame that called the function that asks."""
    try:
        return sys._getframe(2)
    except ValueError:
        return None
