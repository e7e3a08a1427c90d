"""The program's datasets as nodes, and the calls that a traced function made of columns."""

from __future__ import annotations

import itertools
import os
import sys
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from . import seeds

__all__ = ["Call", "Column", "Field", "Name", "Node", "Origin", "Scope", "Spec", "Unsupported", "caller"]

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Origin(NamedTuple):
    """The line of the user's program that something stands on."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{os.path.basename(self.file)}:{self.line}"


def caller() -> Origin:
    """The innermost line outside this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and os.path.abspath(frame.f_code.co_filename).startswith(
        PACKAGE + os.sep
    ):
        frame = frame.f_back
    return Origin(frame.f_code.co_filename, frame.f_lineno)


@dataclass(frozen=True)
class Spec:
    """The known facts of a column; None: not known.

    kind: "dense", "ragged" or "sparse".
    """

    dtype: str | None = None
    shape: tuple[int | None, ...] | None = None
    kind: str = "dense"

    @property
    def rank(self) -> int | None:
        return None if self.shape is None else len(self.shape)


@dataclass(frozen=True)
class Unsupported:
    """A construct that Tundish would not carry over with the same batches."""

    origin: Origin
    name: str
    why: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.origin}  {self.name}: {self.why}; {self.remedy}"


class Name:
    """The name of a column. One that nobody chose may yet take a better one."""

    __slots__ = ("is_chosen", "text")

    def __init__(self, text: str, is_chosen: bool = True) -> None:
        self.text = text
        self.is_chosen = is_chosen

    def suggest(self, text: str) -> None:
        if not self.is_chosen:
            self.text, self.is_chosen = text, True

    def __repr__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Field:
    """A component of a dataset's elements."""

    name: Name
    spec: Spec = Spec()


class Scope:
    """The function that columns belong to: inside interleave's, those of the outer one are constants. depth:
    of the functions that run now."""

    __slots__ = ("outer",)
    depth = 0

    def __init__(self, outer: Scope | None = None) -> None:
        self.outer = outer


@dataclass(eq=False)
class Call:
    """A call of a public function with columns among its arguments.

    name: TensorFlow's name of it, as "tf.io.parse_example".
    layer: of a Keras layer the object, since its calls share one state; kwargs are then the arguments of
        its constructor, and args its inputs.
    """

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    origin: Origin
    spec: Any = None  # a Spec, or a dict or list of them
    layer: object = None
    serial: int = field(default_factory=itertools.count().__next__)


@dataclass(eq=False)
class Node:
    """A dataset: a stage with its parameters, after its inputs.

    structure: a nest of Fields; of a dataset of windows its `element` is a dataset. depth: of the functions
    that it was made in.
    """

    stage: str
    params: dict[str, Any]
    inputs: tuple[Node, ...]
    structure: Any
    origin: Origin
    facts: dict[str, Any] = field(default_factory=dict)
    seed: int | None = field(default_factory=seeds.current)  # of the program when it was built
    depth: int = field(default_factory=lambda: Scope.depth)
    serial: int = field(default_factory=itertools.count().__next__)


def _operator(name: str, swapped: bool = False) -> Any:
    def method(self: Column, other: Any) -> Column:
        from .lowering import record

        result: Column = record(name, (other, self) if swapped else (self, other), {})
        return result

    return method


def _unary(name: str) -> Any:
    def method(self: Column) -> Column:
        from .lowering import record

        result: Column = record(name, (self,), {})
        return result

    return method


def _refusal(what: str, remedy: str) -> Any:
    def method(self: Column, *_: Any, **__: Any) -> Any:
        from .trace import TraceError

        raise TraceError(caller(), what, remedy)

    return method


class Column:
    """A column while a function is traced: what will be computed, not a value.

    It has TensorFlow's operators and the attributes `dtype`, `shape` and `ndim`. An operation that needs a
    value now, as `if`, `len` or numpy, raises tundish.data.TraceError with the line and the remedy.
    """

    __array_priority__ = 100

    def __init__(
        self,
        call: Call | None,
        spec: Spec | None = None,
        *,
        index: Any = None,
        field: Field | None = None,
        scope: Scope | None = None,
    ) -> None:
        self.call = call
        self.spec = spec if spec is not None else Spec()
        self.index = index
        self.field = field
        self.scope = scope

    @property
    def dtype(self) -> Any:
        from .dtypes import DType

        return None if self.spec.dtype is None else DType(self.spec.dtype)

    @property
    def shape(self) -> tuple[int | None, ...] | None:
        return self.spec.shape

    def get_shape(self) -> tuple[int | None, ...] | None:
        return self.spec.shape

    @property
    def ndim(self) -> int | None:
        return self.spec.rank

    def set_shape(self, shape: Any) -> None:
        """The shape as the program knows it. It changes no value."""
        known = tuple(None if size is None or size == -1 else int(size) for size in shape)
        self.spec = Spec(self.spec.dtype, known, self.spec.kind)

    __add__ = _operator("tf.add")
    __radd__ = _operator("tf.add", True)
    __sub__ = _operator("tf.subtract")
    __rsub__ = _operator("tf.subtract", True)
    __mul__ = _operator("tf.multiply")
    __rmul__ = _operator("tf.multiply", True)
    __truediv__ = _operator("tf.truediv")
    __rtruediv__ = _operator("tf.truediv", True)
    __floordiv__ = _operator("tf.math.floordiv")
    __rfloordiv__ = _operator("tf.math.floordiv", True)
    __mod__ = _operator("tf.math.floormod")
    __rmod__ = _operator("tf.math.floormod", True)
    __pow__ = _operator("tf.pow")
    __rpow__ = _operator("tf.pow", True)
    __lt__ = _operator("tf.less")
    __le__ = _operator("tf.less_equal")
    __gt__ = _operator("tf.greater")
    __ge__ = _operator("tf.greater_equal")
    __eq__ = _operator("tf.equal")
    __ne__ = _operator("tf.not_equal")
    __and__ = _operator("tf.logical_and")
    __rand__ = _operator("tf.logical_and", True)
    __or__ = _operator("tf.logical_or")
    __ror__ = _operator("tf.logical_or", True)
    __xor__ = _operator("tf.math.logical_xor")
    __rxor__ = _operator("tf.math.logical_xor", True)
    __neg__ = _unary("tf.negative")
    __abs__ = _unary("tf.abs")
    __invert__ = _unary("tf.logical_not")
    __getitem__ = _operator("tf.strided_slice")
    __hash__ = object.__hash__

    __bool__ = _refusal(
        "a Python `if`, `while`, `and`, `or` or `not` needs the value of a column, which there is none of"
        " while the function is traced",
        "use tundish.tf.where(condition, a, b), and & | ~ for and, or, not; Dataset.filter drops elements",
    )
    __len__ = _refusal(
        "len() needs the value of a column",
        "use tundish.tf.shape(x)[0], or x.shape[0] where it is known",
    )
    __iter__ = _refusal(
        "a Python `for` goes over the values of a column",
        "use operations on the whole column, Dataset.unbatch, or x[0], x[1] for single values",
    )
    __int__ = _refusal("int() needs the value of a column", "use tundish.tf.cast(x, tundish.tf.int64)")
    __index__ = _refusal("a Python number is needed, and a column is not one", "write the number itself")
    __float__ = _refusal(
        "float() needs the value of a column", "use tundish.tf.cast(x, tundish.tf.float32)"
    )
    __array__ = _refusal(
        "numpy cannot see the values of a column",
        "use the function of tundish.tf of the same name, or `program:` for code of your own",
    )
    numpy = _refusal(
        ".numpy() needs the values of a column",
        "use functions of tundish.tf, or `program:` for code of your own",
    )
    __setitem__ = _refusal(
        "a column cannot be assigned to in place",
        "use tundish.tf.where, or tundish.tf.concat of the parts",
    )

    def __getattr__(self, name: str) -> Any:
        from .lowering import METHODS, PARTS, record

        if name in METHODS:
            return lambda *args, **kwargs: record(METHODS[name], (self, *args), kwargs)
        if name in PARTS and self.spec.kind == "sparse":
            return record(PARTS[name], (self,), {})
        raise AttributeError(f"a column has no attribute {name!r} while a function is traced")

    def __repr__(self) -> str:
        what = self.field.name.text if self.field is not None else self.call.name if self.call else "?"
        return f"<Column {what}: {self.spec.dtype} {self.spec.shape}>"
