"""numpy's types for those of columns."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import numpy
    from numpy.typing import NDArray

    from ._tundish import Array


def numpy_dtype(name: str) -> numpy.dtype[Any]:
    """The numpy dtype of a column's dtype, as "float32"."""
    try:
        import numpy
    except ImportError as error:
        raise ImportError(
            "batch[name] gives numpy arrays, and numpy is not installed: pip install numpy, or take"
            " the raw memory with batch.array(name)"
        ) from error
    if name != "bfloat16":
        return numpy.dtype(name)
    try:
        import ml_dtypes
    except ImportError as error:
        raise ImportError(
            "numpy has no bfloat16 of its own: pip install ml_dtypes, or take the raw memory with"
            " batch.array(name)"
        ) from error
    own: numpy.dtype[Any] = numpy.dtype(ml_dtypes.bfloat16)
    return own


def numpy_array(array: Array, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
    """The result of numpy.asarray(array, dtype, copy=copy)."""
    own = numpy_dtype(array.dtype)
    import numpy

    view = numpy.ndarray(array.shape, own, memoryview(array))
    if dtype is not None and numpy.dtype(dtype) != own:
        if copy is False:
            raise ValueError(f"{own} cannot become {numpy.dtype(dtype)} without a copy")
        return view.astype(dtype)
    return view.copy() if copy else view


def empty_array(shape: tuple[int, ...], dtype: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """A new array, aligned to 64 bytes, and the same memory as bytes."""
    own = numpy_dtype(dtype)
    import math

    import numpy

    size = math.prod(shape) * own.itemsize
    memory = numpy.empty(size + 63, numpy.uint8)
    begin = -memory.ctypes.data % 64
    memory = memory[begin : begin + size]
    return memory.view(own).reshape(shape), memory
