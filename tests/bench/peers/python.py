"""The criteo and jpeg pipelines of the other cells, into what a framework's train step takes.

Cells are named python-FRAMEWORK-PIPELINE. Each peer stands in the best arrangement found for it:
threads of the trainer's own process that parse or decode without Python's lock, in blocks of
several batches, beat worker processes, whose batches are copied between processes.
"""

import importlib
import importlib.metadata
import os
from functools import partial

from . import criteo, jpeg, streaming
from .peer import Batch, Peer

BLOCK_ROWS = 4 * criteo.BATCH_ROWS


def into_numpy():
    return lambda batch: batch


def into_torch():
    """torch cannot know that an array is read-only: of those it takes a copy."""
    import torch

    def tensor(array):
        return torch.from_numpy(array if array.flags.writeable else array.copy())

    return lambda batch: _converted(batch, tensor)


def into_jax():
    import jax

    jax.config.update("jax_enable_x64", True)
    return lambda batch: _converted(batch, jax.device_put)


def _converted(batch, convert):
    parts = (batch.ids, batch.dense, batch.label)
    return Batch(*(part if part is None else convert(part) for part in parts))


def in_loader(peer):
    """A peer's batches through torch's DataLoader, in the trainer's own process."""
    import torch
    from torch.utils.data import DataLoader, IterableDataset

    class Batches(IterableDataset):
        def __iter__(self):
            return peer.epoch()

    loader = DataLoader(Batches(), batch_size=None, collate_fn=lambda batch: batch)
    return Peer(f"torch {torch.__version__} over {peer.version}", lambda: iter(loader), near=peer.near)


def criteo_torch(folder):
    return in_loader(criteo.pyarrow(folder, None))


def criteo_grain(folder):
    import grain

    blocks = criteo.BlockSource(os.path.join(folder, "train.tsv"), BLOCK_ROWS)
    parsed = grain.MapDataset.source(blocks).map(criteo.ArrowParser(folder))
    return _grain_peer(grain, parsed, criteo.rebatch)


def jpeg_grain(folder):
    import grain

    batches = grain.MapDataset.source(jpeg.BatchSource(folder)).map(jpeg.decode_batch)
    return _grain_peer(grain, batches, iter, near=True)


def _grain_peer(grain, dataset, shape, near=False):
    options = grain.ReadOptions(num_threads=criteo.THREADS, prefetch_buffer_size=4)
    dataset = dataset.to_iter_dataset(options)
    version = f"grain {importlib.metadata.version('grain')}"
    return Peer(version, lambda: shape(iter(dataset)), near=near)


def criteo_spdl(folder):
    path = os.path.join(folder, "train.tsv")
    parse = criteo.ArrowParser(folder)
    return _spdl_peer(lambda: criteo.line_blocks(path, BLOCK_ROWS), parse, criteo.rebatch)


def jpeg_spdl(folder):
    source = jpeg.BatchSource(folder)

    def batches():
        return (source[index] for index in range(len(source)))

    return _spdl_peer(batches, jpeg.decode_batch, iter, near=True)


def _spdl_peer(blocks, work, shape, near=False):
    from spdl.pipeline import PipelineBuilder

    def parts():
        builder = PipelineBuilder().add_source(blocks())
        builder.pipe(work, concurrency=criteo.THREADS, output_order="input").add_sink(4)
        pipeline = builder.build(num_threads=criteo.THREADS)
        with pipeline.auto_stop():
            yield from pipeline

    version = f"spdl-core {importlib.metadata.version('spdl-core')}"
    return Peer(version, lambda: shape(parts()), near=near)


INTO = {"numpy": into_numpy, "torch": into_torch, "jax": into_jax}
PEERS_OF = {
    "criteo": {
        "torch": criteo_torch,
        "grain": criteo_grain,
        "spdl": criteo_spdl,
        "streaming": streaming.criteo,
        "tfdata": partial(criteo.tfdata, _cell=None),
    },
    "jpeg": {
        "torch": lambda folder: in_loader(jpeg.pool(folder)),
        "grain": jpeg_grain,
        "spdl": jpeg_spdl,
        "streaming": streaming.jpeg,
        "tfdata": partial(jpeg.tfdata, _cell=None),
    },
}


def delivered(name, folder, cell):
    """A peer of the cell's pipeline, its batches in the cell's framework."""
    _, framework, pipeline, *_ = cell.split("-")
    peer = PEERS_OF[pipeline][name](folder)
    into = INTO[framework]()
    return Peer(peer.version, lambda: map(into, peer.epoch()), near=peer.near)


PEERS = {name: partial(delivered, name) for name in PEERS_OF["criteo"]}
