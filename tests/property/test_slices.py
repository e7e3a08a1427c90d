"""What replicas are given is their batch, cut: for every content stage, before and after batch,
the slices put behind each other are what one replica is given, and slices without rows have its
rows' dimensions.

    test_slices.py [--all] [STAGE ...]

--all takes every stage that batches, which takes minutes. Only what has one of the names given is
run, if there are any.
"""

import json
import os
import subprocess
import sys
import tempfile
from itertools import accumulate, pairwise

PROGRAM = os.path.join(os.environ["TUNDISH_BUILD"], "server", "tundish")
DATA = os.path.join(os.path.dirname(__file__), "..", "conformance", "cases")

ROWS = 5
NUMBERS = {
    "i": "[0, 1, 2, 3, 4]",
    "f": "{values: [0.5, 1.5, -2.0, 8.0, 4.0], dtype: float32}",
    "v": "{values: [[1, 2, 3], [4, 5, 7], [7, 8, 9], [0, 1, 0], [2, 2, 2]], dtype: float32}",
    "k": "[[0, 1], [1, 1], [2, 3], [3, 0], [0, 0]]",
    "one": "[[0], [1], [2], [3], [1]]",
    "u": "{values: [[1, 2, 3], [4, 5, 7], [7, 8, 9], [0, 1, 0], [2, 2, 2]], dtype: float32}",
    "j": "[0, 1, 1, 3, 4]",
}
TEXTS = {
    "s": '["a b", "c", "d e f", "", "a a"]',
    "n": '["1", "2", "30", "4", "5"]',
    "p": '[["a", "b c"], ["c", ""], ["d e f", "a"], ["", ""], ["a", "a"]]',
}


def grid(rows, *dims):
    """Numbers that differ, as nested lists."""
    numbers = iter(range(10**6))

    def fill(left):
        return [fill(left[1:]) for _ in range(left[0])] if left else next(numbers) % 251

    return fill((rows, *dims))


PICTURES = {
    "c": "{values: %s, dtype: uint8}" % grid(ROWS, 3, 4, 2),
    "m": "{values: %s, dtype: float32}" % grid(ROWS, 3, 4),
    "w": "{values: %s, dtype: float32}" % grid(ROWS, 24),
}


def slices(columns):
    return "from_tensor_slices: {%s}" % ", ".join(f"{c}: {v}" for c, v in columns.items())


SOURCES = {
    "numbers": [slices(NUMBERS)],
    "texts": [slices(TEXTS)],
    "pictures": [slices(PICTURES)],
    "words": [slices(TEXTS), "string_split: {columns: s}", "select: [s]"],
    "sparse": [
        slices({"v": NUMBERS["v"], "k": NUMBERS["k"]}),
        "to_sparse: {columns: [v, k]}",
    ],
    "sequences": ["tfrecord: data/new-seq.tfrecord"],
    "photos": [
        "tfrecord: [data/new-img-0.tfrecord, data/new-img-1.tfrecord]",
        'parse_example: {features: {img: {type: FixedLen, dtype: string, shape: []}}, '
        "columns: [img]}",
    ],
}

SEQUENCE = "{type: FixedLenSequence, dtype: %s, shape: [], allow_missing: true}"

# A source, and a stage (or several) that stands before batch and after it; a third item says which
# of these two it cannot: "row" or "batch".
STAGES = [
    ("numbers", "cast: {columns: [i, k], dtype: float32}"),
    ("numbers", "map: {x: f * 2}"),
    ("numbers", "map: {x: v - mean(v)}"),
    ("numbers", "map: {x: v / max(v)}"),
    ("numbers", "map: {x: 'sum(v, -1)'}"),
    ("numbers", "map: {x: 'v[..., 1:]', y: 'v[..., 0]', z: 'argmax(v, -1)'}"),
    ("numbers", "map: {x: 'where(v > 2, v, 0.0)', y: v * f}", "batch"),
    ("numbers", "map: {x: size(v)}", "batch"),
    ("numbers", "select: [v, i]"),
    ("numbers", "drop: [v, i]"),
    ("numbers", "rename: {v: z}"),
    ("numbers", "reshape: {columns: v, shape: [3, 1]}", "batch"),
    ("numbers", "reshape: {columns: v, shape: [-1, 3, 1]}"),
    ("numbers", "reshape: {columns: k, shape: [-1]}"),
    ("numbers", "expand_dims: {columns: [v, i], axis: -1}"),
    ("numbers", "expand_dims: {columns: v, axis: 1}"),
    ("numbers", "squeeze: {columns: one, axis: -1}"),
    ("numbers", "concat: {columns: [v, u], axis: -1, output: x}"),
    ("numbers", "concat: {columns: [v, u], axis: 0, output: x}"),
    ("numbers", "stack: {columns: [v, u], axis: -1, output: x}"),
    ("numbers", "stack: {columns: [i, j], axis: -1, output: x}"),
    ("numbers", "stack: {columns: [v, u], axis: 0, output: x}"),
    ("numbers", "one_hot: {columns: [i, k], depth: 4}"),
    ("numbers", "one_hot: {columns: k, depth: 4, axis: 0}"),
    ("numbers", "pad_or_truncate: {columns: [v, k], length: 5}"),
    ("numbers", "pad_or_truncate: {columns: v, length: 2, axis: 0}"),
    ("numbers", "to_sparse: {columns: [v, k]}"),
    ("numbers", "integer_lookup: {columns: [i, k], vocabulary: [1, 2]}"),
    ("numbers", "integer_lookup: {columns: k, vocabulary: [1, 2], output_mode: multi_hot, "
     "sparse: true}"),
    ("numbers", "integer_lookup: {columns: k, vocabulary: [1, 2], output_mode: one_hot}; "
     "to_sparse: {columns: k}; to_dense: {columns: k}"),
    ("numbers", "integer_lookup: {columns: [i, k], vocabulary: [1, 2], output_mode: multi_hot}"),
    ("numbers", "integer_lookup: {columns: [i, k, one], vocabulary: [1, 2], output_mode: one_hot}"),
    ("numbers", "hashing: {columns: [i, k], num_bins: 4}"),
    ("numbers", "hashing: {columns: [k, one], num_bins: 4, output_mode: one_hot}"),
    ("numbers", "hashing: {columns: i, num_bins: 4, output_mode: one_hot}", "row"),
    ("numbers", "hashing: {columns: [i, k], num_bins: 4, output_mode: count}"),
    ("numbers", "hashed_crossing: {columns: [i, j], num_bins: 5, output: x}"),
    ("numbers", "hashed_crossing: {columns: [i, j], num_bins: 5, output_mode: one_hot, output: x}"),
    ("numbers", "category_encoding: {columns: [i, k], num_tokens: 5}"),
    ("numbers", "category_encoding: {columns: [i, k, one], num_tokens: 5, output_mode: one_hot}"),
    ("numbers", "category_encoding: {columns: [i, k], num_tokens: 5, output_mode: count}"),
    ("numbers", "category_encoding: {columns: k, num_tokens: 5, sparse: true, dtype: int64}"),
    ("numbers", "discretization: {columns: [f, v], bin_boundaries: [0.0, 1.0]}"),
    ("numbers", "discretization: {columns: [f, v], bin_boundaries: [0.0], output_mode: multi_hot}"),
    ("numbers", "normalization: {columns: v, mean: [1, 2, 3], variance: [1, 4, 9]}"),
    ("numbers", "normalization: {columns: v, mean: 2, variance: 4, axis: null}"),
    ("numbers", "rescaling: {columns: [v, f], scale: 2.0, offset: 1.0}"),
    ("numbers", "rescaling: {columns: v, scale: [1, 2, 3]}"),
    ("numbers", "as_string: {columns: [i, v]}"),
    ("numbers", "bucketize: {columns: f, num_buckets: 3}"),
    ("numbers", "scale_to_0_1: {columns: [f, v]}"),
    ("numbers", "scale_to_z_score: {columns: [f, v]}"),
    ("numbers", "scale_by_min_max: {columns: [f, v]}"),
    ("numbers", "scale_to_gaussian: {columns: f}"),
    ("numbers", "pca: {columns: v, output_dim: 2, dtype: float32}"),
    ("numbers", "covariance: {columns: v, dtype: float32}"),
    ("texts", "string_lower: {columns: [s, p]}"),
    ("texts", "string_upper: {columns: [s, p]}"),
    ("texts", "string_strip: {columns: [s, p]}"),
    ("texts", "string_split: {columns: [s, p]}"),
    ("texts", "string_length: {columns: [s, p]}"),
    ("texts", "regex_replace: {columns: [s, p], pattern: a, rewrite: bb}"),
    ("texts", "unicode_split: {columns: [s, p], input_encoding: UTF-8}"),
    ("texts", "string_to_number: {columns: n}"),
    ("texts", "string_to_hash_bucket_fast: {columns: [s, p], num_buckets: 7}"),
    ("texts", "string_to_hash_bucket_strong: {columns: [s, p], num_buckets: 7, key: [1, 2]}"),
    ("texts", "hash_strings: {columns: [s, p], hash_buckets: 7}"),
    ("texts", "substr: {columns: [s, p], pos: 0, len: 1}"),
    ("texts", "ngrams: {columns: p, ngram_width: 2}"),
    ("texts", "string_lookup: {columns: [s, p], vocabulary: [a, c]}"),
    ("texts", "string_lookup: {columns: [s, p], vocabulary: [a, c], output_mode: multi_hot}"),
    ("texts", "string_lookup: {columns: [s, p], vocabulary: [a, c], output_mode: one_hot}"),
    ("texts", "text_vectorization: {columns: s, vocabulary: [a, c]}"),
    ("texts", "text_vectorization: {columns: s, vocabulary: [a, c], ragged: true}"),
    ("texts", "text_vectorization: {columns: s, vocabulary: [a, c], ngrams: 2}"),
    ("texts", "text_vectorization: {columns: s, vocabulary: [a, c], output_sequence_length: 2}"),
    ("texts", "text_vectorization: {columns: s, vocabulary: [a, c], output_mode: multi_hot}"),
    ("texts", "compute_and_apply_vocabulary: {columns: [s, p]}"),
    ("texts", "decode_csv: {serialized: n, record_defaults: [0], column_names: [x]}"),
    ("texts", "decode_raw: {columns: n, out_type: uint8, fixed_length: 2}"),
    ("words", "string_length: {columns: s}"),
    ("texts", "string_split: {columns: s}; to_dense: {columns: s}", "row"),
    ("texts", "string_split: {columns: s}; to_dense: {columns: s, shape: [null, 4]}", "row"),
    ("words", "to_sparse: {columns: s}", "row"),
    ("words", "ngrams: {columns: s, ngram_width: 2}"),
    ("words", "ngrams: {columns: s, ngram_width: [1, 2]}"),
    ("words", "string_lookup: {columns: s, vocabulary: [a, c]}"),
    ("words", "string_lookup: {columns: s, vocabulary: [a, c], output_mode: multi_hot}", "row"),
    ("texts", "string_split: {columns: s}; string_lookup: {columns: s, vocabulary: [a, c]}; "
     "to_sparse: {columns: s}; tfidf: {columns: s, vocab_size: 5, output: [t, u]}", "row"),
    ("texts", "string_split: {columns: s}; to_sparse: {columns: s}; "
     "bag_of_words: {columns: s, ngram_range: [1, 2]}", "row"),
    ("texts", "string_split: {columns: s}; to_sparse: {columns: s}; word_count: {columns: s}",
     "row"),
    ("words", "word_count: {columns: s}"),
    ("words", "unicode_split: {columns: s, input_encoding: UTF-8}", "row"),
    ("words", "hashing: {columns: s, num_bins: 4}"),
    ("sparse", "to_dense: {columns: [v, k]}"),
    ("sparse", "to_ragged: {columns: k}", "row"),
    ("pictures", "resize: {columns: [c, m], size: [2, 2]}", "row"),
    ("pictures", "resize: {columns: c, size: [2, 2]}"),
    ("pictures", "resize: {columns: c, size: [5, 6], preserve_aspect_ratio: true}"),
    ("pictures", "resize: {columns: c, size: [2, 9], method: nearest}"),
    ("pictures", "resize: {columns: c, size: [2, 2], method: area, antialias: true}"),
    ("pictures", "resize: {columns: m, size: [7, 2]}", "row"),
    ("pictures", "resizing: {columns: c, height: 2, width: 3}"),
    ("pictures", "resizing: {columns: c, height: 2, width: 3, crop_to_aspect_ratio: true}"),
    ("pictures", "resizing: {columns: c, height: 2, width: 3, pad_to_aspect_ratio: true}"),
    ("pictures", "resizing: {columns: m, height: 2, width: 3}", "row"),
    ("pictures", "center_crop: {columns: c, height: 2, width: 2}"),
    ("pictures", "center_crop: {columns: c, height: 5, width: 5}"),
    ("pictures", "center_crop: {columns: m, height: 2, width: 2}", "row"),
    ("pictures", "random_crop: {columns: c, height: 2, width: 2, seed: 3}"),
    ("pictures", "random_crop: {columns: c, height: 2, width: 2, seed: 3, training: false}"),
    ("pictures", "random_flip: {columns: c, seed: 3}"),
    ("pictures", "random_flip: {columns: m, seed: 3}", "row"),
    ("pictures", "random_rotation: {columns: c, factor: 0.2, seed: 3}"),
    ("pictures", "random_zoom: {columns: c, height_factor: 0.2, seed: 3}"),
    ("pictures", "random_translation: {columns: c, height_factor: 0.2, width_factor: 0.2, "
     "seed: 3}"),
    ("pictures", "random_contrast: {columns: c, factor: 0.2, seed: 3}"),
    ("pictures", "random_contrast: {columns: m, factor: 0.2, seed: 3}", "row"),
    ("pictures", "random_brightness: {columns: c, factor: 0.2, seed: 3}"),
    ("pictures", "random_resized_crop: {columns: c, height: 2, width: 2, seed: 3}"),
    ("pictures", "random_resized_crop: {columns: m, height: 2, width: 2, seed: 3, training: false}",
     "row"),
    ("pictures", "rescaling: {columns: [c, m], scale: 0.5}"),
    ("pictures", "map: {c: 'cast(c, float32) / cast(max(c), float32)'}"),
    ("pictures", "stft: {columns: w, frame_length: 8, frame_step: 4}"),
    ("pictures", "stft: {columns: [w, m], frame_length: 3, frame_step: 2, pad_end: true}"),
    ("pictures", "mel_spectrogram: {columns: w, fft_length: 16, sequence_stride: 4, "
     "num_mel_bins: 3, sampling_rate: 8000, max_freq: 4000, min_freq: 20}"),
    ("pictures", "mel_spectrogram: {columns: w, fft_length: 16, sequence_stride: 4, "
     "num_mel_bins: 3, sampling_rate: 8000, max_freq: 4000, min_freq: 20, power_to_db: false}"),
    ("numbers", "stft: {columns: f, frame_length: 2, frame_step: 1}", "row"),
    ("numbers", "mel_spectrogram: {columns: f, fft_length: 2, sequence_stride: 1, num_mel_bins: 2, "
     "sampling_rate: 8000, max_freq: 4000, min_freq: 20, power_to_db: false}", "row"),
    ("sequences", "parse_example: {features: {v: %s}, columns: [v]}" % (SEQUENCE % "float32")),
    ("sequences", "parse_example: {features: {n: %s}, columns: [n]}" % (SEQUENCE % "int64")),
    ("sequences", "parse_example: {features: {s: %s}, columns: [s]}" % (SEQUENCE % "string")),
    ("sequences", "parse_example: {features: {v: {type: VarLen, dtype: float32}}, columns: [v]}"),
    ("sequences", "parse_example: {features: {v: {type: Ragged, dtype: float32}}, columns: [v]}"),
    ("photos", "decode_png: {columns: img, channels: 3}", "batch"),
    ("photos", "decode_image: {columns: img, channels: 3, expand_animations: false}", "batch"),
    ("photos", "decode_png: {columns: img, channels: 3}; resize: {columns: img, size: [2, 2]}",
     "batch"),
    ("photos", "decode_png: {columns: img, channels: 3}; resizing: {columns: img, height: 2, "
     "width: 2, pad_to_aspect_ratio: true}; map: {img: img / max(img)}", "batch"),
    ("photos", "string_length: {columns: img}"),
]

BATCHES = {
    "batch": "batch: 2",
    "drop": "batch: {batch_size: 4, drop_remainder: true}",
    "padded": "padded_batch: 3",
    "ragged": "ragged_batch: 3",
    "window": "window: {size: 3}",
    "rebatch": "batch: 3; rebatch: 4",
    "bucket": "bucket_by_sequence_length: {column: v, bucket_boundaries: [4], "
    "bucket_batch_sizes: [4, 4]}",
}
DEALS = [
    (1, "replicas: 3"),
    (1, "replicas: 2"),
    (2, "replicas: 1, auto_shard: DATA"),
    (2, "replicas: 2, auto_shard: DATA"),
]


def lines(folder, stages, workers, distribute):
    """What peek prints."""
    path = os.path.join(folder, "pipeline.yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write("seed: 5\nstreams:\n  case:\n    dataset:\n")
        file.writelines(f"      - {stage.strip()}\n" for stage in stages)
        file.write(f"    distribute: {{{distribute}}}\n")
    command = [PROGRAM, "peek", path, "--json", "--analyze", "--root", DATA]
    command += ["--cache", folder, "--analysis", folder, "--num-workers", str(workers)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if run.returncode < 0:
        raise AssertionError(f"tundish peek died of signal {-run.returncode}\n{run.stderr}")
    return [json.loads(line) for line in run.stdout.splitlines()], run.stderr


def read(printed):
    """element_spec, the columns of each slice by (step, worker, replica), and the first error."""
    spec, found, error = None, {}, None
    for line in printed:
        if "element_spec" in line:
            spec = line["element_spec"]
        elif "columns" in line:
            found[line["step"], line["worker"], line["replica"]] = line["columns"]
        elif isinstance(line.get("end"), dict):
            error = error or line["end"]
    return spec, found, error


def joined(parts):
    """Slices of one column, put behind each other."""
    whole = {k: parts[0][k] for k in ("dtype", "sparse", "ragged") if k in parts[0]}
    whole["values"] = [value for part in parts for value in part["values"]]
    if parts[0].get("sparse"):
        begins = [0, *accumulate(part["dense_shape"][0] for part in parts)]
        whole["inner"] = {tuple(part["dense_shape"][1:]) for part in parts}
        whole["rows"] = begins[-1]
        whole["indices"] = [
            [index[0] + begin, *index[1:]]
            for part, begin in zip(parts, begins)
            for index in part["indices"]
        ]
    elif parts[0].get("ragged"):
        whole["inner"] = {tuple(part.get("inner_shape", [])) for part in parts}
        whole["lengths"] = [
            [b - a for part in parts for a, b in pairwise(part["row_splits"][k])]
            for k in range(len(parts[0]["row_splits"]))
        ]
    else:
        whole["inner"] = {tuple(part["shape"][1:]) for part in parts}
        whole["rows"] = sum(part["shape"][0] for part in parts)
    return whole


def dealt(found, step):
    """The slices of one step as they were cut: slice s went to worker s modulo all."""
    order = sorted((key for key in found if key[0] == step), key=lambda key: (key[2], key[1]))
    return [found[key] for key in order]


def judge(folder, stages):
    """What is wrong with a pipeline, or None; whether it is one."""
    spec, whole, error = read(lines(folder, stages, 1, "replicas: 1")[0])
    if spec is None:
        return None, False
    for workers, distribute in DEALS:
        printed, said = lines(folder, stages, workers, distribute)
        own_spec, found, own_error = read(printed)
        where = f"{workers} workers, {distribute}"
        if own_spec is None:
            return f"{where}: {said.strip()}", True
        if own_error != error and (own_error is None or error is None):
            return f"{where}: {own_error} instead of {error}", True
        for (step, _, _), columns in whole.items():
            for name, column in columns.items():
                parts = [one[name] for one in dealt(found, step)]
                if not parts:
                    return f"{where}: step {step} is missing", True
                if joined(parts) != joined([column]):
                    return (
                        f"{where}: step {step}, {name}: {json.dumps(parts)}\n    instead of "
                        f"{json.dumps(column)} in slices"
                    ), True
    return None, True


def placed(source, stage, where, batch):
    """The stages of a pipeline in which `stage` stands before the batch, or after it."""
    batches = BATCHES[batch].split("; ")
    own = stage.split("; ")
    return SOURCES[source] + (own + batches if where == "row" else batches + own)


def check(source, stage, where, kinds):
    """How many pipelines there were, and how many of them failed."""
    run, failed = 0, 0
    for batch in kinds:
        stages = placed(source, stage, where, batch)
        with tempfile.TemporaryDirectory() as folder:
            fault, is_pipeline = judge(folder, stages)
        run += is_pipeline
        if fault is not None:
            failed += 1
            print("FAILED", "; ".join(stages[len(SOURCES[source]) :]), f"({source})")
            print("   ", fault)
    if run == 0:
        failed += 1
        print("FAILED", stage, f"is refused with every kind of batch as a {where}'s stage")
    return run, failed


def main():
    asked = sys.argv[1:]
    kinds = BATCHES if "--all" in asked else ("batch", "drop", "padded")
    asked = [name for name in asked if name != "--all"]
    run, failed = 0, 0
    for source, stage, *without in STAGES:
        if asked and not any(name in stage for name in asked):
            continue
        for where in ("row", "batch"):
            if where not in without:
                counts = check(source, stage, where, kinds)
                run, failed = run + counts[0], failed + counts[1]
    print(f"{run} pipelines, {failed} failed")
    return 1 if failed or run == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
