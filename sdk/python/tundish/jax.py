"""Batches as JAX arrays.

    import tundish

    for batch in tundish.open("train", format="jax"):
        state = step(state, batch["x"], batch["label"])

On the CPU these arrays are the batch's own memory, and JAX keeps the batch as long as it uses them.
A jitted function that is given numpy arrays, `step(state, dict(batch))`, does the same with less work in
Python for each column. On another device JAX copies; of a reader with device="cuda" it takes the memory
on the GPU as it is.
"""

from __future__ import annotations

import importlib
import json
import warnings
from collections.abc import Awaitable, Mapping
from typing import Any

import jax
import numpy as np
from jax.experimental import sparse

import tundish

from .columns import Ragged, Sparse, Strings, lender
from .options import spelt

__all__ = ["Checkpointable", "convert", "global_arrays"]


def convert(column: Any) -> Any:
    """A column, or batch.array(name), as JAX has it, on the default device; on the CPU without a copy.

    dense: a jax.Array of the same shape.
    ragged: Ragged, with arrays of JAX for values and row_splits. It is a pytree, so jit takes it.
    sparse: a jax.experimental.sparse.BCOO.
    strings: Strings, or Ragged or Sparse of them, as they are: JAX has no strings.

    Without jax_enable_x64 JAX makes 32 bits of 64. That loses the upper half of large integers, such as
    hashes, so a column of 64 bits is warned of once.
    """
    if isinstance(column, Strings):
        return column
    if not isinstance(column, (Ragged, Sparse)):
        return _array(column)
    if isinstance(column.values, Strings):
        return column
    values = _array(column.values)
    if isinstance(column, Ragged):
        return Ragged(values, tuple(map(_lent, column.row_splits)))
    indices = _lent(column.indices)
    return sparse.BCOO((values, indices), shape=column.shape, indices_sorted=True)


def _array(numbers: Any) -> jax.Array:
    if not _has_64_bits() and _is_wide(numbers):
        _warn_of_64_bits(numbers.dtype)
    return _lent(numbers)


def _lent(numbers: Any) -> jax.Array:
    if isinstance(numbers, tundish.DeviceArray):
        there: jax.Array = jax.dlpack.from_dlpack(numbers)
        return there
    # JAX lets go of numpy's arrays some time after its own: the slot would wait for that.
    array = lender(numbers) if jax.default_backend() == "cpu" else None
    taken: jax.Array
    if array is None:
        taken = jax.device_put(np.asarray(numbers))
        return taken
    if _has_64_bits() or not _is_wide(array):
        try:
            taken = _taken(array.__dlpack__(copy=False), jax.local_devices(backend="cpu")[0], None)
            return taken
        except TypeError:  # it is not public, and may have gone or want other arguments
            pass
    taken = jax.dlpack.from_dlpack(_Sharing(array))
    return taken


class _Sharing:
    """Gives out the array's own memory: JAX asks for the kind of capsule that cannot say read-only, and
    writes to none."""

    def __init__(self, array: tundish.Array) -> None:
        self._array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**{**options, "copy": False})

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


def _find_taking() -> Any:
    """The one step of jax.dlpack.from_dlpack that makes the array. The others, which would convert it,
    take five times as long."""
    try:
        return getattr(importlib.import_module("jaxlib._jax"), "dlpack_managed_tensor_to_buffer", None)
    except ImportError:
        return None


_taken = _find_taking()


def _has_64_bits() -> bool:
    return bool(getattr(jax.config, "jax_enable_x64"))


def _is_wide(numbers: Any) -> bool:
    return str(numbers.dtype).endswith("64")


def _warn_of_64_bits(dtype: Any) -> None:
    warnings.warn(
        f"JAX makes 32 bits of {dtype}: values beyond that are changed. Set jax_enable_x64, or make the "
        "column narrower in the pipeline file (cast)",
        stacklevel=2,
    )


@spelt("tundish.jax.global_arrays()")
def global_arrays(columns: Mapping[str, Any], sharding: jax.sharding.Sharding) -> dict[str, jax.Array]:
    """One array over all processes for each dense column: this process's rows are those of its batch.

    columns: a batch, or a dict of some of its columns.
    sharding: of each array, as NamedSharding(mesh, PartitionSpec("data")): of the first dimension.
    Each process reads its own replica. Row i of the batch of replica r is row r * rows + i of the array,
    if the processes' devices are in order in the mesh and all batches have as many rows.
    Raises TypeError for strings, ragged and sparse columns, which cannot be laid over devices.
    """
    for name, column in columns.items():
        if isinstance(column, (Ragged, Sparse, Strings)):
            raise TypeError(
                f"column {name!r} is {type(column).__name__}, and only dense columns can be laid over "
                "devices: leave it out, or make it dense in the pipeline file (to_dense, padded_batch)"
            )
    return {
        name: _global(sharding, column)
        for name, column in columns.items()
    }


def _global(sharding: jax.sharding.Sharding, column: Any) -> jax.Array:
    make: Any = jax.make_array_from_process_local_data
    array: jax.Array = make(sharding, np.asarray(column))
    return array


class Checkpointable:
    """A reader's place as Orbax saves it, beside the parameters of the model.

        ocp.save_checkpointables(path, {"model": params, "data": Checkpointable(reader)})
        ocp.load_checkpointables(path, {"model": abstract, "data": Checkpointable(reader)})

    It is Orbax v1's StatefulCheckpointable. Each process writes a file of its own. A place that is loaded
    takes effect at once. One place is right for all replicas that took equal steps, so a
    process that has no file, as among more processes than before, takes that of the first.
    """

    def __init__(self, reader: tundish.Reader) -> None:
        self.reader = reader

    async def save(self, directory: Any) -> Awaitable[None]:
        """Write the place as it is now; `directory` may be created meanwhile."""
        state = json.dumps(self.reader.state_dict())

        async def write() -> None:
            path = await directory.await_creation()
            (path / f"process_{jax.process_index()}.json").write_text(state)

        return write()

    async def load(self, directory: Any) -> Awaitable[None]:
        """Set the place that save() wrote."""

        async def read() -> None:
            path = directory / f"process_{jax.process_index()}.json"
            if not path.exists():
                path = directory / "process_0.json"
            self.reader.load_state_dict(json.loads(path.read_text()))

        return read()


jax.tree_util.register_pytree_node(
    Ragged, lambda ragged: ((ragged.values, ragged.row_splits), None), lambda _, parts: Ragged(*parts)
)
