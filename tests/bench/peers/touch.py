"""What a consumer does to a batch: read one byte of each page."""

import numpy as np

PAGE_BYTES = 4096
_sink = 0


def touch(column):
    """Of an array, or what numpy takes as one without a copy, or a list of bytes. Returns its bytes."""
    global _sink
    if isinstance(column, list):
        return sum(touch(np.frombuffer(item, np.uint8)) for item in column)
    values = np.asarray(column)
    flat = values.reshape(-1) if values.flags.c_contiguous else values.T.reshape(-1)
    _sink ^= int(np.bitwise_xor.reduce(flat.view(np.uint8)[::PAGE_BYTES]))
    return values.nbytes
