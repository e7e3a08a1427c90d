"""The cells mel, stft, png, augment, window, filtered and files: pipelines as users write them."""

import importlib.metadata
import itertools
import os
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from .jpeg import BatchSource
from .peer import Batch, Peer

WAV_BYTES, WAV_HEAD = 64044, 44
FRAME, STEP = 512, 160
SHAPE, SIDE = (375, 500), 224
MEAN, VARIANCE = (10.0, 20.0, 30.0), (3600.0, 3500.0, 3400.0)
BATCH = {"mel": 16, "stft": 16, "png": 32, "augment": 64, "window": 256, "filtered": 1024, "files": 1024}
THREADS = os.cpu_count()
SERIES_WIDTH, WINDOW, SHIFT = 8, 64, 4


def pngs_in(folder):
    return sorted(str(path) for path in Path(folder).glob("*.png"))


def tfdata(folder, cell):
    from .tensorflow_peer import READ_BYTES, VERSION, tf, tuned

    several = {"num_parallel_calls": tf.data.AUTOTUNE}

    def sounds():
        records = tf.data.FixedLengthRecordDataset(os.path.join(folder, "wavs"), WAV_BYTES, buffer_size=READ_BYTES)
        return records.map(lambda record: tf.squeeze(tf.audio.decode_wav(record)[0], -1), **several)

    def mel():
        layer = tf.keras.layers.MelSpectrogram(
            fft_length=FRAME, sequence_stride=STEP, sampling_rate=16000, num_mel_bins=80
        )
        return sounds().map(layer, **several).enumerate()

    def stft():
        return sounds().map(lambda sound: tf.abs(tf.signal.stft(sound, FRAME, STEP)), **several).enumerate()

    def png():
        files = tf.data.Dataset.from_tensor_slices(pngs_in(folder))
        return files.map(lambda path: tf.io.decode_png(tf.io.read_file(path), channels=3), **several)

    def augment():
        def one(record):
            image = tf.cast(tf.io.decode_jpeg(record, channels=3), tf.float32)
            image = tf.image.random_crop(image, (SIDE, SIDE, 3))
            image = tf.image.random_flip_left_right(image)
            image = tf.clip_by_value(tf.image.random_brightness(image, 0.2 * 255), 0, 255)
            image = tf.clip_by_value(tf.image.random_contrast(image, 0.8, 1.2), 0, 255)
            return (image - MEAN) / tf.sqrt(VARIANCE)

        paths = [os.path.join(folder, f"jpegs-{shard}.tfrecord") for shard in range(2)]
        return tf.data.TFRecordDataset(paths, buffer_size=READ_BYTES).map(one, **several).enumerate()

    def window():
        rows = tf.data.FixedLengthRecordDataset(
            os.path.join(folder, "series"), 4 * SERIES_WIDTH, buffer_size=READ_BYTES
        ).map(lambda record: tf.io.decode_raw(record, tf.float32))
        windows = rows.window(WINDOW, shift=SHIFT, drop_remainder=True)
        return windows.flat_map(lambda rows: rows.batch(WINDOW)).enumerate()

    def files():
        paths = sorted(str(path) for path in Path(folder).glob("part-*.txt"))
        lines = tf.data.TextLineDataset(paths)
        return lines.batch(BATCH[cell]).map(lambda lines: tf.strings.to_number(lines, tf.int64), **several)

    dataset = {"mel": mel, "stft": stft, "png": png, "augment": augment, "window": window, "files": files}[cell]()
    dataset = tuned(dataset if cell == "files" else dataset.batch(BATCH[cell]))

    def epoch():
        for parts in dataset.as_numpy_iterator():
            yield Batch(*parts) if isinstance(parts, tuple) else Batch(parts)

    return Peer(VERSION, epoch, near=cell == "augment")


def in_threads(make, rows, size):
    """Batches of what `make` makes of some rows, a thread a core, in order."""
    threads = ThreadPoolExecutor(THREADS)

    def epoch():
        waiting = deque()
        for begin in range(0, len(rows), size):
            waiting.append(threads.submit(make, begin, rows[begin : begin + size]))
            if len(waiting) > 2 * THREADS:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

    return epoch


def wavs_in(folder):
    """Rows of samples as TensorFlow has them."""
    records = np.memmap(os.path.join(folder, "wavs"), np.uint8, mode="r").reshape(-1, WAV_BYTES)
    return lambda rows: records[rows, WAV_HEAD:].view(np.int16).astype(np.float32) / 32768, range(len(records))


def scipy(folder, cell):
    import scipy.fft

    read, rows = wavs_in(folder)
    hann = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(FRAME) / FRAME)).astype(np.float32)

    def make(begin, rows):
        frames = np.lib.stride_tricks.sliding_window_view(read(rows), FRAME, axis=1)[:, ::STEP]
        return Batch(np.arange(begin, begin + len(rows)), np.abs(scipy.fft.rfft(frames * hann)))

    return Peer(f"scipy {scipy.__version__}", in_threads(make, rows, BATCH[cell]))


def torch(folder, cell):
    import torch as library

    library.set_num_threads(1)
    read, rows = wavs_in(folder)
    hann = library.hann_window(FRAME)

    def make(begin, rows):
        sounds = library.from_numpy(read(rows))
        spectra = library.stft(sounds, FRAME, STEP, window=hann, center=False, return_complex=True)
        return Batch(np.arange(begin, begin + len(rows)), spectra.abs().transpose(1, 2).contiguous().numpy())

    return Peer(f"torch {library.__version__}", in_threads(make, rows, BATCH[cell]))


def cv2(folder, cell):
    import cv2 as library

    library.setNumThreads(1)
    version = f"opencv {library.__version__}"
    if cell == "png":

        def decode(_, paths):
            images = (library.imread(path, library.IMREAD_COLOR) for path in paths)
            return Batch(np.stack([library.cvtColor(image, library.COLOR_BGR2RGB) for image in images]))

        return Peer(version, in_threads(decode, pngs_in(folder), BATCH[cell]))
    import simplejpeg

    source = BatchSource(folder)
    scale = (1 / np.sqrt(VARIANCE)).astype(np.float32)
    shift = (-np.float32(MEAN) * scale).astype(np.float32)

    def one(record, draw):
        top, left = (int(draw.integers(0, length - SIDE + 1)) for length in SHAPE)
        image = simplejpeg.decode_jpeg(record, fastdct=True)[top : top + SIDE, left : left + SIDE]
        image = image[:, ::-1] if draw.random() < 0.5 else image
        image = np.clip(image + np.float32(draw.uniform(-51, 51)), 0, 255)
        mean = np.float32(library.mean(image)[:3])
        image = np.clip((image - mean) * np.float32(draw.uniform(0.8, 1.2)) + mean, 0, 255)
        return image * scale + shift

    def augment(begin, batch):
        draw = np.random.default_rng(begin)
        images = [one(record, draw) for record in source[batch[0]]]
        return Batch(np.arange(begin * BATCH[cell], begin * BATCH[cell] + len(images)), np.stack(images))

    version += f", simplejpeg {simplejpeg.__version__}"
    return Peer(version, in_threads(augment, range(len(source)), 1), near=True)


def copy(folder, cell):
    """A strided copy of the rows of each window."""
    rows = np.fromfile(os.path.join(folder, "series"), np.float32).reshape(-1, SERIES_WIDTH)
    windows = np.lib.stride_tricks.sliding_window_view(rows, WINDOW, axis=0)[::SHIFT].transpose(0, 2, 1)

    def epoch():
        for begin in range(0, len(windows), BATCH[cell]):
            part = windows[begin : begin + BATCH[cell]]
            yield Batch(np.arange(begin, begin + len(part)), part.copy())

    return Peer(f"numpy {np.__version__}", epoch)


def polars(folder, cell):
    import polars as library

    def epoch():
        rows = library.scan_ndjson(os.path.join(folder, "rows.jsonl"))
        rows = rows.filter(library.col("b") < 900).filter(library.col("c") > 1).select("a", "b", "c").collect()
        for part in rows.iter_slices(BATCH[cell]):
            yield Batch(part["a"].to_numpy(), part["c"].cast(library.Float32).to_numpy(), part["b"].to_numpy())

    return Peer(f"polars {library.__version__}", epoch)


def pyarrow(folder, cell):
    from pyarrow import compute, json

    def epoch():
        rows = json.read_json(os.path.join(folder, "rows.jsonl"))
        rows = rows.filter((compute.field("b") < 900) & (compute.field("c") > 1)).combine_chunks()
        for part in rows.to_batches(BATCH[cell]):
            yield Batch(part["a"].to_numpy(), part["c"].to_numpy().astype(np.float32), part["b"].to_numpy())

    return Peer(f"pyarrow {importlib.metadata.version('pyarrow')}", epoch)


def plain(folder, cell):
    """A loop that reads one file after the other."""
    paths = sorted(Path(folder).glob("part-*.txt"))

    def epoch():
        lines = itertools.chain.from_iterable(path.read_bytes().split() for path in paths)
        while batch := list(itertools.islice(lines, BATCH[cell])):
            yield Batch(np.array(batch).astype(np.int64))

    return Peer(f"numpy {np.__version__}", epoch)


PEERS = {
    "tfdata": tfdata, "scipy": scipy, "torch": torch, "cv2": cv2,
    "copy": copy, "polars": polars, "pyarrow": pyarrow, "plain": plain,
}  # fmt: skip
