#!/usr/bin/env python3
"""Small files of the kinds that public tf.data programs read: make_data.py FOLDER"""

import sys
from pathlib import Path

import numpy as np
import tensorflow as tf

WORDS = "the a movie was great awful film plot boring superb acting I loved hated it".split()


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    make(folder)


def make(folder):
    draw = np.random.default_rng(7)
    for part in (images, flowers, texts, tables, clicks, sounds, binary, sequences):
        part(folder, draw)


def picture(draw, height=24, width=20):
    """Smooth, as photographs are."""
    y, x = np.mgrid[0:height, 0:width]
    a, b, c = draw.uniform(1, 9, 3)
    planes = [np.sin(x / a) + np.cos(y / b), np.sin((x + y) / c), np.cos(x / b - y / a)]
    return np.clip(np.stack(planes, -1) * 60 + 128, 0, 255).astype(np.uint8)


def jpeg(draw):
    return tf.io.encode_jpeg(picture(draw, int(draw.integers(16, 30)), int(draw.integers(16, 30)))).numpy()


def number(*values):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def real(*values):
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))


def text(*values):
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))


def write(path, rows, **options):
    with tf.io.TFRecordWriter(str(path), tf.io.TFRecordOptions(**options)) as writer:
        for row in rows:
            writer.write(tf.train.Example(features=tf.train.Features(feature=row)).SerializeToString())


def images(folder, draw):
    """ImageNet's records: encoded pictures, labels, boxes."""
    for shard in range(3):
        rows = []
        for i in range(8):
            box = np.sort(draw.uniform(0, 1, (2, 2)), 0)
            rows.append(
                {
                    "image/encoded": text(jpeg(draw)),
                    "image/class/label": number(int(draw.integers(1, 11))),
                    "image/class/text": text(f"class {i}".encode()),
                    "image/object/bbox/xmin": real(box[0, 0]),
                    "image/object/bbox/ymin": real(box[0, 1]),
                    "image/object/bbox/xmax": real(box[1, 0]),
                    "image/object/bbox/ymax": real(box[1, 1]),
                }
            )
        write(folder / f"imagenet-{shard:05}-of-00003", rows)
    for shard in range(2):
        rows = [{"image": text(jpeg(draw)), "target": number(int(draw.random() < 0.2))} for _ in range(8)]
        write(folder / f"melanoma-{shard}.tfrec", rows, compression_type="GZIP")


def flowers(folder, draw):
    for kind in ("daisy", "roses", "tulips"):
        (folder / "flowers" / kind).mkdir(parents=True, exist_ok=True)
        for i in range(6):
            (folder / "flowers" / kind / f"{i}.jpg").write_bytes(jpeg(draw))
    (folder / "captcha").mkdir(exist_ok=True)
    for i in range(10):
        label = "".join(draw.choice(list("2345bcde"), 5))
        data = tf.io.encode_png(picture(draw, 10, 40)[..., :1]).numpy()
        (folder / "captcha" / f"{label}.png").write_bytes(data)


def sentence(draw):
    return " ".join(draw.choice(WORDS, int(draw.integers(3, 12))))


def texts(folder, draw):
    for kind in ("pos", "neg"):
        (folder / "reviews" / kind).mkdir(parents=True, exist_ok=True)
        for i in range(8):
            (folder / "reviews" / kind / f"{i}.txt").write_text(sentence(draw).capitalize() + "!<br />Bye.")
    for name in ("cowper", "derby", "butler"):
        lines = [sentence(draw) + ", " + sentence(draw) for _ in range(12)]
        (folder / f"{name}.txt").write_text("\n".join(lines) + "\n")
    (folder / "pairs.tsv").write_text(
        "".join(f"{sentence(draw)}\t{sentence(draw)}\n" for _ in range(20))
    )
    (folder / "words.txt").write_text("\n".join(WORDS) + "\n")
    (folder / "lines.jsonl").write_text("".join('{"text": "x"}\n' for _ in range(5)))


def tables(folder, draw):
    rows = ["survived,sex,age,fare,class,deck"]
    for _ in range(30):
        deck = draw.choice(["A", "B", "unknown"])
        rows.append(
            f"{draw.integers(2)},{draw.choice(['male', 'female'])},{draw.uniform(1, 80):.1f},"
            f"{draw.uniform(5, 90):.4f},{draw.choice(['First', 'Second', 'Third'])},{deck}"
        )
    (folder / "titanic.csv").write_text("\n".join(rows) + "\n")
    for shard in range(2):
        lines = ["age,type,breed,fee,adopted"]
        for _ in range(15):
            lines.append(
                f"{draw.integers(1, 99)},{draw.choice(['Cat', 'Dog'])},{draw.choice(['mixed', 'tabby', 'lab'])},"
                f"{draw.integers(0, 500)},{draw.integers(2)}"
            )
        (folder / f"pets-{shard}.csv").write_text("\n".join(lines) + "\n")
    fonts = ["".join(f"{v}," for v in draw.integers(0, 255, 4)) + "x" for _ in range(10)]
    (folder / "fonts.csv").write_text("\n".join(fonts) + "\n")
    trips = []
    for i in range(20):
        trips.append(
            {
                "trip_miles": real(float(draw.uniform(0, 20))) if i % 4 else real(),
                "fare": real(float(draw.uniform(3, 60))),
                "payment_type": text(draw.choice([b"Cash", b"Credit Card", b"Unknown"])),
                "trip_start_hour": number(int(draw.integers(24))),
                "tips": real(float(draw.uniform(0, 9))),
                "tags": text(*draw.choice([b"x", b"y", b"z"], int(draw.integers(0, 4)))),
            }
        )
    for row in trips:
        if not row["trip_miles"].float_list.value:
            del row["trip_miles"]
    write(folder / "taxi.tfrecord", trips)
    penguins = [
        {**{n: real(float(draw.uniform(10, 60))) for n in ("culmen_length", "culmen_depth", "mass")},
         "species": number(int(draw.integers(3)))}
        for _ in range(12)
    ]  # fmt: skip
    write(folder / "penguins.tfrecord", penguins)


def clicks(folder, draw):
    """Criteo's lines: a label, 13 counts, 26 terms; fields may be empty."""
    for day in range(2):
        lines = []
        for _ in range(20):
            counts = ["" if draw.random() < 0.2 else str(int(draw.geometric(0.05))) for _ in range(13)]
            terms = ["" if draw.random() < 0.1 else f"{draw.integers(2**20):08x}" for _ in range(26)]
            lines.append("\t".join([str(int(draw.integers(2))), *counts, *terms]))
        (folder / f"day_{day}").write_text("\n".join(lines) + "\n")


def sounds(folder, draw):
    for word in ("yes", "no"):
        (folder / "speech" / word).mkdir(parents=True, exist_ok=True)
        for i in range(4):
            wave = np.sin(np.arange(1600) * draw.uniform(0.02, 0.2)).astype(np.float32)[:, None] * 0.5
            data = tf.audio.encode_wav(wave, 16000).numpy()
            (folder / "speech" / word / f"{i}.wav").write_bytes(data)


def binary(folder, draw):
    """CIFAR's records: a label and the planes of a picture."""
    rows = [bytes([int(draw.integers(10))]) + draw.integers(0, 256, 48, np.uint8).tobytes() for _ in range(12)]
    (folder / "data_batch_1.bin").write_bytes(b"".join(rows[:6]))
    (folder / "data_batch_2.bin").write_bytes(b"".join(rows[6:]))


def sequences(folder, draw):
    """BERT's pretraining records."""
    for shard in range(2):
        rows = []
        for _ in range(6):
            rows.append(
                {
                    "input_ids": number(*map(int, draw.integers(0, 99, 8))),
                    "input_mask": number(*([1] * 6 + [0] * 2)),
                    "segment_ids": number(*([0] * 4 + [1] * 4)),
                    "masked_lm_positions": number(*map(int, draw.integers(0, 8, 2))),
                    "masked_lm_weights": real(1.0, 0.0),
                    "next_sentence_labels": number(int(draw.integers(2))),
                    "tokens": text(*draw.choice([b"to", b"be", b"or"], int(draw.integers(1, 6)))),
                }
            )
        write(folder / f"pretrain-{shard}.tfrecord", rows)


if __name__ == "__main__":
    main()
