"""Content stages for what a pipeline has, by what kind of column it is."""

# Name C stands for the column, N for the new one's.
_NUMBER = [
    ("number", {"map": {"N": "C % 7"}}),
    ("number", {"map": {"N": "C * 2 if C > 3 else -C"}}),
    ("number", {"map": {"N": "min(C, 5) // 2"}}),
    ("float", {"map": {"N": "cast(C, float32) / 3"}}),
    ("float", {"map": {"N": "log1p(cast(abs(C), float64))"}}),
    ("float", {"map": {"N": "C - mean(C)"}}),
    ("whole", {"map": {"N": "sum(C)"}}),
    ("pair", {"map": {"N": "[C, C + 1]"}}),
    ("text", {"as_string": {"columns": "C", "output": "N"}}),
    ("number", {"integer_lookup": {"columns": "C", "output": "N", "vocabulary": [1, 2, 3, 5, 8, 104]}}),
    ("vector", {"integer_lookup": {"columns": "C", "output": "N", "vocabulary": [1, 2, 3],
                                   "output_mode": "one_hot"}}),
    ("number", {"hashing": {"columns": "C", "output": "N", "num_bins": 7}}),
    ("number", {"discretization": {"columns": "C", "output": "N", "bin_boundaries": [1.0, 4.0, 10.0]}}),
    ("vector", {"one_hot": {"columns": "C", "output": "N", "depth": 5}}),
    ("whole", {"category_encoding": {"columns": "C", "output": "N", "num_tokens": 1000,
                                     "output_mode": "one_hot"}}),
    ("float", {"normalization": {"columns": "C", "output": "N", "axis": None, "mean": 3.0,
                                 "variance": 2.0}}),
    ("float", {"rescaling": {"columns": "C", "output": "N", "scale": 0.5}}),
    ("vector", {"expand_dims": {"columns": "C", "output": "N", "axis": -1}}),
    ("float", {"cast": {"columns": "C", "output": "N", "dtype": "float16"}}),
    ("number", {"cast": {"columns": "C", "output": "N", "dtype": "int16"}}),
    ("number", {"cast": {"columns": "C", "output": "N", "dtype": "uint8"}}),
    ("text", {"map": {"N": "'even' if C % 2 == 0 else 'odd'"}}),
]  # fmt: skip
_FLOAT = [
    ("float", {"map": {"N": "clip(C, 0, 2)"}}),
    ("float", {"map": {"N": "where(C > 1, C, C * 2)"}}),
    ("float", {"rescaling": {"columns": "C", "output": "N", "scale": 0.1, "offset": -1.0}}),
    ("number", {"discretization": {"columns": "C", "output": "N", "bin_boundaries": [0.0, 2.5]}}),
    ("float", {"cast": {"columns": "C", "output": "N", "dtype": "float64"}}),
]
_TEXT = [
    ("number", {"string_to_hash_bucket_fast": {"columns": "C", "output": "N", "num_buckets": 9}}),
    ("number", {"string_length": {"columns": "C", "output": "N"}}),
    ("text", {"string_upper": {"columns": "C", "output": "N"}}),
    ("text", {"regex_replace": {"columns": "C", "output": "N", "pattern": "[13w]", "rewrite": "ab"}}),
    ("ragged", {"string_split": {"columns": "C", "output": "N", "sep": "1"}}),
    ("ragged", {"unicode_split": {"columns": "C", "output": "N"}}),
    ("number", {"string_lookup": {"columns": "C", "output": "N", "vocabulary": ["w1", "2", "w3", "8"]}}),
    ("number", {"hashing": {"columns": "C", "output": "N", "num_bins": 5, "mask_value": "w2"}}),
    ("vector", {"text_vectorization": {"columns": "C", "output": "N", "vocabulary": ["w1", "5"],
                                       "output_sequence_length": 3}}),
    ("vector", {"text_vectorization": {"columns": "C", "output": "N", "vocabulary": ["w1", "5"],
                                       "output_mode": "multi_hot"}}),
    ("text", {"substr": {"columns": "C", "output": "N", "pos": 0, "len": 1}}),
    ("number", {"string_to_number": {"columns": "C", "output": "N", "out_type": "int64"}}),
]  # fmt: skip
_VECTOR = [
    ("vector", {"pad_or_truncate": {"columns": "C", "output": "N", "length": 3}}),
    ("vector", {"map": {"N": "C * 2"}}),
    ("vector", {"map": {"N": "C - mean(C)"}}),
    ("vector", {"expand_dims": {"columns": "C", "output": "N", "axis": -1}}),
    ("sparse", {"to_sparse": {"columns": "C", "output": "N"}}),
    ("vector", {"cast": {"columns": "C", "output": "N", "dtype": "bfloat16"}}),
]
_LISTS = [
    ("vector", {"pad_or_truncate": {"columns": "C", "output": "N", "length": 2}}),
    ("vector", {"to_dense": {"columns": "C", "output": "N"}}),
    ("same", {"map": {"N": "C"}}),
]
_IMAGE = [
    ("image", {"resize": {"columns": "C", "output": "N", "size": [3, 5]}}),
    ("image", {"resizing": {"columns": "C", "output": "N", "height": 2, "width": 3}}),
    ("image", {"center_crop": {"columns": "C", "output": "N", "height": 2, "width": 2}}),
    ("image", {"random_crop": {"columns": "C", "output": "N", "height": 2, "width": 3}}),
    ("image", {"random_flip": {"columns": "C", "output": "N"}}),
    ("image", {"random_brightness": {"columns": "C", "output": "N", "factor": 0.3}}),
    ("image", {"rescaling": {"columns": "C", "output": "N", "scale": 0.00392}}),
    ("image", {"map": {"N": "C[..., ::-1]"}}),
]
_BY_KIND = {
    "number": _NUMBER,
    "float": _FLOAT,
    "text": _TEXT,
    "vector": _VECTOR,
    "ragged": _LISTS,
    "sparse": _LISTS,
    "image": _IMAGE,
    "whole": [],
}


class Content:
    def __init__(self, random, new_name):
        self.random, self.new_name = random, new_name

    def stages(self, shape, extras):
        """A stage for one of shape's columns, or of extras {name: kind}, to which its result goes."""
        random = self.random
        if random.random() < 0.15:
            return self._move(shape, extras)
        column = random.choice([*shape.columns, *extras])
        kind = extras.get(column, "number")
        if not _BY_KIND[kind]:
            return []
        result, stage = random.choice(_BY_KIND[kind])
        if (result == "whole" and random.random() < 0.8) or (result == "pair" and shape.depth > 0):
            return []
        new = self.new_name()
        extras[new] = {"same": kind, "pair": "vector"}.get(result, result)
        return [_named(stage, column, new)]

    def _move(self, shape, extras):
        """What moves columns as they are."""
        random = self.random
        if extras and random.random() < 0.5:
            column = random.choice(list(extras))
            kind = extras.pop(column)
            if random.random() < 0.5:
                return [{"drop": {"columns": column}}]
            new = self.new_name()
            extras[new] = kind
            return [{"rename": {column: new}}]
        kept = random.sample(list(extras), random.randint(0, len(extras)))
        for column in set(extras) - set(kept):
            del extras[column]
        order = [*shape.columns, *kept]
        random.shuffle(order)
        return [{"select": {"columns": order}}]


def _named(value, column, new):
    """The template with its names filled in."""
    if isinstance(value, dict):
        return {_named(key, column, new): _named(item, column, new) for key, item in value.items()}
    if isinstance(value, list):
        return [_named(item, column, new) for item in value]
    if not isinstance(value, str):
        return value
    if value in ("C", "N"):
        return column if value == "C" else new
    return value.replace("C", column)
