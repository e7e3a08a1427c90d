"""tf.data as a builder of pipeline files: the same names, arguments and defaults, without TensorFlow.

    import tundish
    from tundish.data import Dataset, TFRecordDataset

    ds = TFRecordDataset(["clicks.tfrecord"]).shuffle(10000, seed=7).map(parse).batch(256)
    print(ds.yaml())
"""

from .dataset import AUTOTUNE, Dataset
from .graph import Call, Column, Origin, Spec, Unsupported
from .plan import plan_of, save
from .sources import CsvDataset, FixedLengthRecordDataset, TextLineDataset, TFRecordDataset
from .trace import TraceError, UnsupportedError

__all__ = [
    "AUTOTUNE",
    "Call",
    "Column",
    "CsvDataset",
    "Dataset",
    "FixedLengthRecordDataset",
    "Origin",
    "Spec",
    "TFRecordDataset",
    "TextLineDataset",
    "TraceError",
    "Unsupported",
    "UnsupportedError",
    "plan_of",
    "save",
]
