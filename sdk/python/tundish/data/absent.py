"""Methods of tf.data.Dataset that a pipeline file has nothing for, and what to use."""

from __future__ import annotations

__all__ = ["ABSENT"]

READ = "a dataset is read by a server: use peek(n), or `for batch in tundish.open(dataset)`"
ABSENT = {
    "as_numpy_iterator": READ,
    "cardinality": "use tundish.plan, or len(reader)",
    "get_single_element": READ,
    "ignore_errors": "use tundish.distribute(dataset, deliver={'on_error': 'skip'})",
    "load": "read the files with TFRecordDataset or TextLineDataset",
    "random": "use tf.random.stateless_uniform in a map of Dataset.range",
    "reduce": READ,
    "rejection_resample": "use sample_from_datasets of filtered datasets",
    "scan": "its state makes rows depend on each other: use `program:`",
    "snapshot": "use cache(filename)",
    "take_while": "use take, or filter",
    "unique": "drop duplicates before, in the files",
}
