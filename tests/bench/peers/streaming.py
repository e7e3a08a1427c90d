"""MosaicML Streaming: rows that were converted to MDS before anything is timed.

Of the click log the converted rows hold the finished numbers, so that nothing is left to parse or to
look up; of photographs the files as they are.
"""

import importlib.metadata
import os
import shutil

import numpy as np

from . import criteo as clicks
from . import jpeg as photographs
from .peer import Batch, Peer

WORKERS = os.cpu_count()


def criteo(folder):
    columns = {"ids": "ndarray:int64:26", "dense": "ndarray:float32:13", "label": "float32"}

    def rows():
        for batch in clicks.pyarrow(folder, None).epoch():
            for row in range(batch.rows):
                yield {"ids": batch.ids[row], "dense": batch.dense[row], "label": batch.label[row]}

    def collate(rows):
        return Batch(
            np.stack([row["ids"] for row in rows]),
            np.stack([row["dense"] for row in rows]),
            np.array([row["label"] for row in rows], np.float32),
        )

    return _peer(f"{folder}-mds", columns, rows(), clicks.BATCH_ROWS, collate)


def jpeg(folder):
    def rows():
        source = photographs.BatchSource(folder)
        for number in range(len(source)):
            for record in source[number]:
                yield {"record": record}

    def collate(rows):
        return photographs.decode_batch([row["record"] for row in rows])

    columns = {"record": "bytes"}
    return _peer(f"{folder}-mds", columns, rows(), photographs.BATCH_ROWS, collate, near=True)


def _peer(target, columns, rows, batch_rows, collate, near=False):
    import torch
    from streaming import StreamingDataset
    from torch.utils.data import DataLoader

    _convert(target, columns, rows)
    dataset = StreamingDataset(
        local=target, shuffle=False, batch_size=batch_rows, num_canonical_nodes=1
    )
    loader = DataLoader(
        dataset,
        batch_size=batch_rows,
        num_workers=WORKERS,
        persistent_workers=True,
        prefetch_factor=4,
        collate_fn=lambda rows: tuple(
            part if part is None else torch.from_numpy(part)
            for part in vars(collate(rows)).values()
        ),
    )

    def epoch():
        for parts in loader:
            yield Batch(*(part if part is None else part.numpy() for part in parts))

    version = f"mosaicml-streaming {importlib.metadata.version('mosaicml-streaming')}"
    return Peer(version, epoch, near=near)


def _convert(target, columns, rows):
    from streaming import MDSWriter

    if os.path.isdir(target):
        return
    part = f"{target}.part"
    shutil.rmtree(part, ignore_errors=True)
    with MDSWriter(out=part, columns=columns) as writer:
        for row in rows:
            writer.write(row)
    os.rename(part, target)
