"""numpy's types for those of columns."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import numpy


def numpy_dtype(name: str) -> numpy.dtype:
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
    return numpy.dtype(ml_dtypes.bfloat16)
