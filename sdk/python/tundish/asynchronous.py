"""`async for batch in reader`: no thread, no polling while nothing comes."""

from __future__ import annotations

import asyncio

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ._tundish import Epoch
    from .batch import Batch
    from .reader import Reader

# How long to sleep between looks at a server that may be hanging or may come back: that raises no
# descriptor.
_LOOK_S = 0.5
# A thread of the library reads for a device, which has no descriptor that could be raised.
_LOOK_AT_DEVICE_S = 0.001


async def batches(reader: Reader, epoch: Epoch) -> AsyncIterator[Batch]:
    """The batches of `epoch`, a loop over the reader that was just begun."""
    while True:
        try:
            batch = epoch.poll()
        except StopIteration:
            return
        if batch is not None:
            yield batch
        elif reader.device is not None:
            await asyncio.sleep(_LOOK_AT_DEVICE_S)
        else:
            await _readable(reader.fileno())


async def _readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    came = asyncio.Event()
    loop.add_reader(descriptor, came.set)
    try:
        await asyncio.wait_for(came.wait(), _LOOK_S)
    except TimeoutError:
        pass
    finally:
        loop.remove_reader(descriptor)
