"""tf.data as a builder of pipeline files: the same names, arguments and defaults, without TensorFlow.

import tundish
from tundish.data import Dataset, TFRecordDataset

ds = TFRecordDataset(["clicks.tfrecord"]).shuffle(10000, seed=7).map(parse).batch(256)
print(ds.yaml())
"""

from types import SimpleNamespace

from .dataset import AUTOTUNE, SHARD_HINT, Dataset
from .distribution import AutoShardPolicy, InputContext, Options, distribute
from .fused import map_and_batch, parallel_interleave, shuffle_and_repeat
from .graph import Call, Column, Origin, Spec, Unsupported
from .plan import plan_of, save
from .python import TensorSpec
from .sources import (
    CsvDataset,
    DirectoryDataset,
    FixedLengthRecordDataset,
    ParquetDataset,
    TextLineDataset,
    TFRecordDataset,
    WebDataset,
)
from .trace import DifferenceError, TraceError, UnsupportedError

experimental = SimpleNamespace(
    AUTOTUNE=AUTOTUNE,
    SHARD_HINT=SHARD_HINT,
    AutoShardPolicy=AutoShardPolicy,
    CsvDataset=CsvDataset,
    map_and_batch=map_and_batch,
    parallel_interleave=parallel_interleave,
    shuffle_and_repeat=shuffle_and_repeat,
)

__all__ = [
    "AUTOTUNE",
    "AutoShardPolicy",
    "Call",
    "Column",
    "CsvDataset",
    "Dataset",
    "DifferenceError",
    "DirectoryDataset",
    "FixedLengthRecordDataset",
    "InputContext",
    "Options",
    "Origin",
    "ParquetDataset",
    "Spec",
    "TFRecordDataset",
    "TensorSpec",
    "TextLineDataset",
    "TraceError",
    "Unsupported",
    "UnsupportedError",
    "WebDataset",
    "distribute",
    "experimental",
    "plan_of",
    "save",
]
