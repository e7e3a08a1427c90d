"""tf.Transform's mappers; `tundish analyze` learns from the stream for them."""

from __future__ import annotations

from typing import Any

from ..dtypes import as_dtype
from ..graph import Column, Spec
from .rule import UNKNOWN, Bound, Refusal, Rewrite, Rule, StageRule, refuse
from .specs import as_first, with_dtype

__all__ = ["RULES"]

VOCABULARY = (
    "top_k=None, frequency_threshold=None, vocab_filename=None, store_frequency=False, reserved_tokens=None,"
    " weights=None, labels=None, use_adjusted_mutual_info=False, min_diff_from_avg={}, coverage_top_k=None,"
    " coverage_frequency_threshold=None, key_fn=None, fingerprint_shuffle=False, file_format='text', name=None)"
)


def _do(name: str, *args: Any, **kwargs: Any) -> Any:
    from . import record

    return record(name, args, kwargs)


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
        f"tft.{stage}({of})",
        _floats,
        stage=stage,
        columns=("x",),
        check=_plain,
        beside=beside,
        learned_as="statistics",
    )


def _floats(bound: Bound) -> Spec:
    spec, dtype = as_first(bound), bound.get("output_dtype")
    own = spec.dtype if spec.dtype in ("float16", "float64") and "output_dtype" in bound else "float32"
    return Spec(own if dtype is None else as_dtype(dtype), spec.shape, spec.kind)


def _applied(
    x: Any,
    deferred_vocab_filename_tensor: Any,
    default_value: Any,
    num_oov_buckets: Any,
    lookup_fn: Any,
    file_format: Any,
) -> Any:
    """`compute_and_apply_vocabulary`, of the column that tft.vocabulary learns from"""
    learned = _learned(deferred_vocab_filename_tensor, "tft.vocabulary")
    if learned is None:
        return refuse("the vocabulary is not tft.vocabulary's", "use a StringLookup layer with vocabulary=")
    if learned.pop("x") is not x:
        refuse("its vocabulary is learned from another column", "use tft.compute_and_apply_vocabulary of each")
    if lookup_fn is not None or learned["store_frequency"] or learned["file_format"] != file_format:
        refuse("it reads the vocabulary's file in a way of its own", "use tft.compute_and_apply_vocabulary")
    if learned["min_diff_from_avg"] is None:
        if learned["use_adjusted_mutual_info"] or learned["labels"] is not None:
            refuse("min_diff_from_avg is not given", "give the number")
        learned["min_diff_from_avg"] = 0.0
    options = {"default_value": default_value, "num_oov_buckets": num_oov_buckets}
    return _do("tft.compute_and_apply_vocabulary", x, **learned, **options)


def _learned(value: Any, name: str) -> Bound | None:
    """The arguments of the analyzer that gave this."""
    from . import find

    call, rule = getattr(value, "call", None), find(name)
    if call is None or call.name != name or rule is None:
        return None
    bound = rule.bind(call.args, call.kwargs)
    return {each: given for each, given in bound.items() if each not in rule.ignored}


def _in_buckets(x: Any, bucket_boundaries: Any) -> Any:
    """`bucketize` with tft.quantiles of the same column, `discretization` with numbers"""
    learned = _learned(bucket_boundaries, "tft.quantiles")
    if learned is not None:
        if learned.pop("x") is not x or not learned.pop("reduce_instance_dims") or x.spec.kind != "dense":
            refuse("its boundaries are learned from another column", "use tft.bucketize of each column")
        return _do("tft.bucketize", x, **learned)
    boundaries = _boundaries(bucket_boundaries)
    if x.spec.dtype != "float32" or x.spec.kind != "dense":
        refuse(f"x is {x.spec.kind} {x.spec.dtype}", "cast it to float32, and make it dense")
    return _do("tf.cast", _do("tf.keras.layers.Discretization", x, bin_boundaries=boundaries), "int64")


def _boundaries(value: Any) -> Any:
    """The only row of a constant of rank 2."""
    if isinstance(value, Column) and value.call is not None and value.call.name == "tf.constant":
        value = value.call.args[0]
    value = value.tolist() if hasattr(value, "tolist") else value
    if not isinstance(value, (list, tuple)) or len(value) != 1 or not isinstance(value[0], (list, tuple)):
        refuse("the boundaries are not constant", "use tft.bucketize, or numbers: [[1.0, 2.5]]")
    if not value[0] or not all(isinstance(each, float) for each in value[0]):
        refuse("the boundaries are not floats", "write numbers: [[1.0, 2.5]]")
    return list(value[0])


def _grams(tokens: Any, ngram_range: Any, separator: Any) -> Any:
    """`ngrams` of one length"""
    if tokens.spec.kind != "sparse" or ngram_range[0] != ngram_range[1]:
        refuse("the n-grams of several lengths stand in another order", "use tft.bag_of_words or one length")
    ragged = _do("tf.RaggedTensor.from_sparse", tokens)
    grams = _do("tf.strings.ngrams", ragged, int(ngram_range[0]), separator=separator)
    return _do("tf.RaggedTensor.to_sparse", grams)


def _boxed(x: Any, shape: Any, default_value: Any) -> Any:
    """`to_dense` with a shape"""
    if isinstance(shape, Column) or any(isinstance(size, Column) for size in shape):
        refuse("the shape must be constant", "write None for a dimension that is not known")
    return _do("tundish.sparse_to_dense", x, default_value=default_value, shape=list(shape))


def _boxed_spec(bound: Bound) -> Spec:
    shape = bound["shape"]
    known = None if isinstance(shape, Column) else tuple(None if size is None else int(size) for size in shape)
    return Spec(bound["x"].spec.dtype, known)


def _used(what: str, remedy: str) -> Any:
    def use(**_: Any) -> Any:
        refuse(what, remedy)

    use.__doc__ = f"nothing by itself: {remedy}"
    return use


def _scalar(name: str, parameters: str) -> Rule:
    return Refusal(
        f"tft.{name}({parameters})",
        why="stages have no single number that is learned",
        remedy="use tft.scale_to_z_score or scale_by_min_max, or write the number",
    )


def _pair(bound: Bound) -> list[Spec]:
    shape = (None, None)
    return [Spec("int64", shape, "sparse"), Spec("float32", shape, "sparse")]


def _check_tfidf(bound: Bound, parameters: Bound) -> None:
    size = bound["vocab_size"]
    if isinstance(size, Column):
        refuse("vocab_size must be constant", "write the number: top_k, + 1 for words that are unknown")


RULES: list[Rule] = [
    StageRule(
        "tft.compute_and_apply_vocabulary(x, *, default_value=-1, num_oov_buckets=0, " + VOCABULARY.format("0.0"),
        with_dtype("int64"),
        stage="compute_and_apply_vocabulary",
        columns=("x",),
        check=_plain,
        beside=("weights", "labels"),
        learned_as="vocab_filename",
    ),
    Rewrite(
        "tft.vocabulary(x, *, " + VOCABULARY.format("None"),
        UNKNOWN,
        into=_used("a vocabulary is no column", "use tft.apply_vocabulary of the same column"),
    ),
    Rewrite(
        "tft.apply_vocabulary(x, deferred_vocab_filename_tensor, *, default_value=-1, num_oov_buckets=0,"
        " lookup_fn=None, file_format='text', name=None)",
        with_dtype("int64"),
        into=_applied,
    ),
    StageRule(
        "tft.bucketize(x, num_buckets, epsilon=None, weights=None, elementwise=False, name=None)",
        with_dtype("int64"),
        stage="bucketize",
        columns=("x",),
        check=_plain,
        beside=("weights",),
        learned_as="statistics",
    ),
    Rewrite(
        "tft.quantiles(x, num_buckets, epsilon, weights=None, reduce_instance_dims=True, name=None)",
        UNKNOWN,
        into=_used("boundaries are no column", "use tft.apply_buckets of the same column"),
    ),
    Rewrite("tft.apply_buckets(x, bucket_boundaries, name=None)", with_dtype("int64"), into=_in_buckets),
    StageRule(
        "tft.bucketize_per_key(x, key, num_buckets, epsilon=None, weights=None, name=None)",
        with_dtype("int64"),
        stage="bucketize_per_key",
        columns=("x",),
        check=_plain,
        beside=("key", "weights"),
        learned_as="statistics",
    ),
    _scaled("x, elementwise=False, name=None, output_dtype=None", "scale_to_z_score"),
    _scaled("x, elementwise=False, name=None, output_dtype=None", "scale_to_gaussian"),
    _scaled("x, elementwise=False, name=None", "scale_to_0_1"),
    _scaled("x, output_min=0.0, output_max=1.0, elementwise=False, name=None", "scale_by_min_max"),
    _scaled(
        "x, key, elementwise=False, key_vocabulary_filename=None, name=None, output_dtype=None",
        "scale_to_z_score_per_key",
        ("key",),
    ),
    _scaled(
        "x, key, elementwise=False, key_vocabulary_filename=None, name=None",
        "scale_to_0_1_per_key",
        ("key",),
    ),
    _scaled(
        "x, key, output_min=0.0, output_max=1.0, elementwise=False, key_vocabulary_filename=None, name=None",
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
    Rewrite(
        "tft.ngrams(tokens, ngram_range, separator, name=None)",
        lambda bound: Spec("string", (None, None), "sparse"),
        into=_grams,
    ),
    StageRule(
        "tft.bag_of_words(tokens, ngram_range, separator, name=None)",
        lambda bound: Spec("string", as_first(bound).shape, "sparse"),
        stage="bag_of_words",
        columns=("tokens",),
        check=_plain,
    ),
    StageRule(
        "tft.tfidf(x, vocab_size, smooth=True, name=None)",
        _pair,
        stage="tfidf",
        columns=("x",),
        check=_check_tfidf,
    ),
    StageRule(
        "tft.word_count(tokens, name=None)",
        lambda bound: Spec("int64"),
        stage="word_count",
        columns=("tokens",),
    ),
    Rewrite(
        "tft.sparse_tensor_to_dense_with_shape(x, shape, default_value=0)", _boxed_spec, into=_boxed
    ),
    *(
        _scalar(name, "x, reduce_instance_dims=True, name=None, output_dtype=None")
        for name in ("mean", "var")
    ),
    *(_scalar(name, "x, reduce_instance_dims=True, name=None") for name in ("min", "max", "sum", "size")),
    *(
        Refusal(
            f"tft.{of}",
            why="it is a matrix, and its signs are tf.Transform's by chance",
            remedy="write `pca` by hand, which projects: see `tundish help pca`",
        )
        for of in ("pca(x, output_dim, dtype, name=None)", "covariance(x, dtype, name=None)")
    ),
]
