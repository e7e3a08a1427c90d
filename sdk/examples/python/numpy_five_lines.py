"""Batches as numpy arrays: tundish-launch FILE --replicas 1 -- python numpy_five_lines.py"""

import tundish

with tundish.open() as train:
    for batch in train:
        print(batch.step, batch["x"].mean(axis=0), batch["label"].sum())
