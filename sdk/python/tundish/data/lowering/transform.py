"""tf.Transform's mappers. What they learn, `tundish analyze` learns from the stream."""

from __future__ import annotations

from ..dtypes import as_dtype
from ..graph import Spec
from .rule import Bound, Rule, StageRule, refuse
from .specs import as_first, with_dtype

__all__ = ["RULES"]


def _plain(bound: Bound, parameters: Bound) -> None:
    for name in ("coverage_top_k", "coverage_frequency_threshold", "key_fn"):
        if parameters.pop(name, None) is not None:
            refuse(f"{name} is not offered", "leave it out")
    for name in ("output_dtype", "dtype"):
        if name in parameters:
            parameters[name] = as_dtype(parameters[name])
    for name, value in parameters.items():
        if isinstance(value, tuple):
            parameters[name] = list(value)


def _scaled(of: str, stage: str, beside: tuple[str, ...] = ()) -> Rule:
    return StageRule(
        f"tft.{stage}({of}, name=None)",
        with_dtype("float32"),
        stage=stage,
        columns=("x",),
        check=_plain,
        beside=beside,
    )


RULES: list[Rule] = [
    StageRule(
        "tft.compute_and_apply_vocabulary(x, default_value=-1, top_k=None, frequency_threshold=None,"
        " num_oov_buckets=0, vocab_filename=None, weights=None, labels=None, use_adjusted_mutual_info=False,"
        " min_diff_from_avg=0.0, coverage_top_k=None, coverage_frequency_threshold=None, key_fn=None,"
        " fingerprint_shuffle=False, file_format='text', store_frequency=False, reserved_tokens=None, name=None)",
        with_dtype("int64"),
        stage="compute_and_apply_vocabulary",
        columns=("x",),
        check=_plain,
        beside=("weights", "labels"),
    ),
    StageRule(
        "tft.bucketize(x, num_buckets, epsilon=None, weights=None, elementwise=False, name=None)",
        with_dtype("int64"),
        stage="bucketize",
        columns=("x",),
        check=_plain,
        beside=("weights",),
    ),
    StageRule(
        "tft.bucketize_per_key(x, key, num_buckets, epsilon=None, weights=None, name=None)",
        with_dtype("int64"),
        stage="bucketize_per_key",
        columns=("x",),
        check=_plain,
        beside=("key", "weights"),
    ),
    _scaled("x, elementwise=False, output_dtype=None", "scale_to_z_score"),
    _scaled("x, elementwise=False, output_dtype=None", "scale_to_gaussian"),
    _scaled("x, elementwise=False", "scale_to_0_1"),
    _scaled("x, output_min=0.0, output_max=1.0, elementwise=False", "scale_by_min_max"),
    _scaled(
        "x, key=None, elementwise=False, key_vocabulary_filename=None, output_dtype=None",
        "scale_to_z_score_per_key",
        ("key",),
    ),
    _scaled(
        "x, key=None, elementwise=False, key_vocabulary_filename=None", "scale_to_0_1_per_key", ("key",)
    ),
    _scaled(
        "x, key=None, output_min=0.0, output_max=1.0, elementwise=False, key_vocabulary_filename=None",
        "scale_by_min_max_per_key",
        ("key",),
    ),
    StageRule(
        "tft.hash_strings(strings, hash_buckets, key=None, name=None)",
        with_dtype("int64"),
        stage="hash_strings",
        columns=("strings",),
        check=_plain,
    ),
    StageRule(
        "tft.bag_of_words(tokens, ngram_range, separator, name=None)",
        lambda bound: Spec("string", as_first(bound).shape, "sparse"),
        stage="bag_of_words",
        columns=("tokens",),
        check=_plain,
    ),
    StageRule(
        "tft.word_count(tokens, name=None)",
        lambda bound: Spec("int64"),
        stage="word_count",
        columns=("tokens",),
    ),
    StageRule(
        "tft.pca(x, output_dim, dtype='float32', name=None)",
        lambda bound: Spec(as_dtype(bound["dtype"])),
        stage="pca",
        columns=("x",),
        check=_plain,
    ),
]
