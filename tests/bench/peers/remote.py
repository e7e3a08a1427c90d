"""The peers of the cell `remote`: one epoch of a store's rows, in batches of 64.

python -m peers.remote PEER KIND ADDRESS reads them and prints what came. python -m peers.remote convert KIND
SOURCE TARGET makes the files that MosaicML Streaming reads of those in a folder; WebDataset's are tar files.
Libraries are imported and objects made before the clock runs; workers and connections begin with it.
"""

import importlib.metadata
import json
import os
import struct
import sys
import tarfile
import tempfile
import time
from pathlib import Path

BATCH_ROWS, WORKERS, SHARDS = 64, 8, 16
PART = 8 << 20  # what one request may ask for, as Tundish does
_PATTERNS = {"tfrecord": "rows-*", "files": "pictures/*"}


def records(file):
    """Of TFRecord; nobody here looks at the checksums."""
    while head := file.read(12):
        yield file.read(struct.unpack("<Q", head[:8])[0])
        file.read(4)


def rows(folder, kind):
    for path in sorted(folder.glob(_PATTERNS[kind])):
        with open(path, "rb") as file:
            yield from records(file) if kind == "tfrecord" else [file.read()]


def convert(kind, source, target):
    from streaming import MDSWriter

    with MDSWriter(out=target, columns={"row": "bytes"}, size_limit=1 << 25) as writer:
        for row in rows(Path(source), kind):
            writer.write({"row": row})


def write_tars(kind, source, target):
    target.mkdir(parents=True)
    tars = [tarfile.open(target / f"{number:02}.tar", "w") for number in range(SHARDS)]
    with tempfile.NamedTemporaryFile() as scratch:
        for number, row in enumerate(rows(source, kind)):
            scratch.seek(0)
            scratch.truncate()
            scratch.write(row)
            scratch.flush()
            tars[number % SHARDS].add(scratch.name, f"{number:06}.row")
    for tar in tars:
        tar.close()


def _loader(dataset, workers=WORKERS):
    from torch.utils.data import DataLoader

    return DataLoader(dataset, batch_size=BATCH_ROWS, num_workers=workers, collate_fn=list)


def s3torchconnector(kind, address):
    from s3torchconnector import S3ClientConfig, S3IterableDataset
    from torch.utils.data import IterableDataset

    objects = S3IterableDataset.from_prefix(
        "s3://bucket/" + _PATTERNS[kind].rstrip("*"),
        region="us-east-1",
        endpoint=address,
        enable_sharding=True,
        s3client_config=S3ClientConfig(force_path_style=True),
    )

    class Rows(IterableDataset):
        def __iter__(self):
            for file in objects:
                yield from records(file) if kind == "tfrecord" else [file.read()]

    return "s3torchconnector", _loader(Rows())


def streaming(kind, address):
    from streaming import StreamingDataset
    os.environ["S3_ENDPOINT_URL"] = address
    dataset = StreamingDataset(
        remote=f"s3://bucket/mds-{kind}",
        local=tempfile.mkdtemp(),
        batch_size=BATCH_ROWS,
        num_canonical_nodes=1,
    )
    # With workers it looks for rows in shards that have not come yet. Its own threads fetch ahead.
    loader = _loader(dataset, workers=0)
    return "mosaicml-streaming", ([row["row"] for row in batch] for batch in loader)


def webdataset(kind, address):
    import webdataset

    urls = [f"pipe:curl -s {address}/bucket/tar-{kind}/{number:02}.tar" for number in range(SHARDS)]
    dataset = webdataset.WebDataset(urls, shardshuffle=False)
    return "webdataset", ([row["row"] for row in batch] for batch in _loader(dataset))


def tfdata(kind, address):
    import tensorflow as tf
    import tensorflow_io  # noqa: F401 - its file systems

    names = [f"{address}/bucket/rows-{number:02}" for number in range(4)]
    if kind == "tfrecord":
        dataset = tf.data.Dataset.from_tensor_slices(names).interleave(
            lambda name: tf.data.TFRecordDataset(name, buffer_size=PART),
            cycle_length=4,
            num_parallel_calls=4,
        )
    else:
        names = [f"{address}/bucket/pictures/{number:05}" for number in range(3000)]
        dataset = tf.data.Dataset.from_tensor_slices(names)
        dataset = dataset.map(tf.io.read_file, num_parallel_calls=WORKERS)
    return "tensorflow-io", dataset.batch(BATCH_ROWS).prefetch(4).as_numpy_iterator()


PEERS = {peer.__name__: peer for peer in (s3torchconnector, streaming, webdataset, tfdata)}


def main():
    if sys.argv[1] == "convert":
        return convert(*sys.argv[2:])
    # What they insist on, though the store asks for none.
    os.environ.update(AWS_ACCESS_KEY_ID="any", AWS_SECRET_ACCESS_KEY="any", AWS_REGION="us-east-1")
    os.environ["AWS_EC2_METADATA_DISABLED"] = "true"
    package, batches = PEERS[sys.argv[1]](*sys.argv[2:])
    count = size = 0
    begin = time.perf_counter()
    first = None
    for batch in batches:
        first = first or time.perf_counter() - begin
        count += len(batch)
        size += sum(map(len, batch))
    seconds = time.perf_counter() - begin
    version = f"{package} {importlib.metadata.version(package)}"
    print(json.dumps({"version": version, "rows": count, "bytes": size, "seconds": seconds,
                      "first_s": first}), flush=True)
    os._exit(0)  # some libraries take seconds to tear themselves down


if __name__ == "__main__":
    main()
