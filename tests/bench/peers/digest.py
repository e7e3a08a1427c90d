"""The digest that consume.c makes too: of ids in order and in any order, and sums.

Of pixels also their mean, for peers that decode or resize them a little otherwise.
"""

import numpy as np

_M = np.uint64


class Digest:
    def __init__(self):
        self.ordered = self.bag = _M(0)
        self.rows = 0
        self.pixels = self.pixel_sum = 0
        self.dense_sum = self.label_sum = 0.0

    def add(self, batch):
        ids = _rows_of(batch.ids)
        with np.errstate(over="ignore"):
            width = np.arange(ids.shape[1], dtype=_M)
            factors = (width * _M(0x9E3779B97F4A7C15) + _M(0xD1B54A32D192ED03)) | _M(1)
            sums = (ids * factors).sum(axis=1, dtype=_M)
            numbers = np.arange(self.rows + 1, self.rows + 1 + len(ids), dtype=_M)
            self.bag += _mix(sums).sum(dtype=_M)
            self.ordered += _mix(sums + numbers * _M(0xA24BAED4963EE407)).sum(dtype=_M)
        self.rows += len(ids)
        if not isinstance(batch.ids, list) and (pixels := np.asarray(batch.ids)).dtype == np.uint8:
            self.pixels += pixels.size
            self.pixel_sum += int(pixels.sum(dtype=np.uint64))
        if batch.dense is not None:
            self.dense_sum += float(np.asarray(batch.dense, np.float64).sum())
        if batch.label is not None:
            self.label_sum += float(np.asarray(batch.label, np.float64).sum())

    def result(self):
        mean = {"mean_pixel": self.pixel_sum / self.pixels} if self.pixels else {}
        return {
            **mean,
            "ordered": f"{int(self.ordered):016x}",
            "bag": f"{int(self.bag):016x}",
            "rows": self.rows,
            "dense_sum": self.dense_sum,
            "label_sum": self.label_sum,
        }


def _mix(x):
    x = (x ^ (x >> _M(29))) * _M(0xBF58476D1CE4E5B9)
    return x ^ (x >> _M(32))


def _rows_of(ids):
    """uint64 rows: of int64 themselves, of float32 the first value, of pixels a sum, of bytes length and
    edges."""
    if isinstance(ids, list):
        edges = [(len(b), _word(b[:8]), _word(b[-8:])) for b in ids]
        return np.array(edges, _M).reshape(len(ids), 3)
    ids = np.asarray(ids)
    ids = ids.reshape(len(ids), -1)
    if ids.dtype == np.uint8:
        places = np.arange(1, ids.shape[1] + 1, dtype=_M)
        return np.stack([(row * places).sum(dtype=_M) for row in ids]).reshape(-1, 1)
    if ids.dtype == np.float32:
        return ids[:, :1].astype(_M)
    return np.ascontiguousarray(ids, np.int64).view(_M)


def _word(piece):
    return int.from_bytes(piece, "little")
