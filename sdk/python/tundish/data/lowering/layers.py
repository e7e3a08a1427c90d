"""Keras' preprocessing layers. Parameters are those of their constructors, and of __call__ after `;`."""

from __future__ import annotations

from ..graph import Spec
from .rule import Bound, Rule, StageRule
from .specs import as_first

__all__ = ["RULES"]


def _lookup_spec(bound: Bound) -> Spec:
    spec = as_first(bound)
    if bound["output_mode"] == "int":
        return Spec("string" if bound["invert"] and "vocabulary" in bound else "int64", spec.shape, spec.kind)
    return Spec("float32" if bound["output_mode"] in ("tf_idf", "tf-idf") else "int64")


def _check_vocabulary(bound: Bound, parameters: Bound) -> None:
    if bound["vocabulary"] is None:
        return
    if hasattr(bound["vocabulary"], "tolist"):
        parameters["vocabulary"] = bound["vocabulary"].tolist()


RULES: list[Rule] = [
    StageRule(
        "tf.keras.layers.StringLookup(inputs, max_tokens=None, num_oov_indices=1, mask_token=None,"
        " oov_token='[UNK]', vocabulary=None, idf_weights=None, invert=False, output_mode='int',"
        " pad_to_max_tokens=False, sparse=False, encoding='utf-8', oov_method='floormod', salt=None, name=None)",
        _lookup_spec,
        stage="string_lookup",
        columns=("inputs",),
        check=_check_vocabulary,
    ),
    StageRule(
        "tf.keras.layers.IntegerLookup(inputs, max_tokens=None, num_oov_indices=1, mask_token=None,"
        " oov_token=-1, vocabulary=None, vocabulary_dtype='int64', idf_weights=None, invert=False,"
        " output_mode='int', sparse=False, pad_to_max_tokens=False, oov_method='floormod', salt=None, name=None)",
        _lookup_spec,
        stage="integer_lookup",
        columns=("inputs",),
        check=_check_vocabulary,
    ),
]
