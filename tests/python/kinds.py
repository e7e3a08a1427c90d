"""A stream with a column of every kind, for tests of what frameworks make of them."""

import rig

COLUMNS = {
    "x": "{values: [[0.5, 1], [2, 3], [4, 5], [6, 7], [8, 9]], dtype: float32}",
    "label": "{values: [0, 1, 0, 1, 1], dtype: int32}",
    "id": "{values: [10, 11, 12, 13, 14], dtype: int64}",
    "flag": "{values: [true, false, false, true, true], dtype: bool}",
    "brain": "{values: [0.5, -1, 2, 3, -4], dtype: bfloat16}",
    "byte": "{values: [[0, 255], [1, 2], [3, 4], [5, 6], [7, 8]], dtype: uint8}",
    "word": "{values: [a, '', tundish, d, e]}",
    "ragged": "{values: [[1, 2, 0], [0, 0, 0], [3, 0, 0], [4, 5, 6], [7, 0, 0]], dtype: int32}",
    "deep": "{values: ['12 3', '4', '', '56 7', '8']}",
    "words": "{values: [[a, b], [c, ''], ['', ''], [dd, ee], [f, '']]}",
    "sparse": "{values: [[0, 1, 0], [2, 0, 3], [0, 0, 0], [0, 0, 4], [5, 0, 0]], dtype: float32}",
    "sparse_words": "{values: [['', a], [b, ''], ['', ''], ['', c], [d, d]]}",
}  # fmt: skip
AFTER = {
    "ragged": ("to_ragged: {columns: ragged, padding: 0}",),
    "deep": ("string_split: {columns: deep}", "unicode_split: {columns: deep}",
             "string_to_number: {columns: deep, out_type: int32}"),
    "words": ("to_ragged: {columns: words, padding: ''}",),
    "sparse": ("to_sparse: {columns: sparse}",),
    "sparse_words": ("to_sparse: {columns: sparse_words}",),
}  # fmt: skip
DENSE = ("x", "label", "id", "flag", "brain", "byte")


def pipeline(*names, deliver="{epochs: 3}", **options):
    """Three batches, of 2, 2 and 1 rows, of these columns; the default is all."""
    names = names or tuple(COLUMNS)
    columns = ", ".join(f"{name}: {COLUMNS[name]}" for name in names)
    stages = ["from_tensor_slices: {%s}" % columns, "batch: 2"]
    stages += [stage for name in names for stage in AFTER.get(name, ())]
    return rig.pipeline(*stages, deliver=deliver, **options)


# What each batch holds, as lists; of sparse columns, the dense array.
BATCHES = [
    {
        "x": [[0.5, 1], [2, 3]], "label": [0, 1], "id": [10, 11], "flag": [True, False],
        "brain": [0.5, -1], "byte": [[0, 255], [1, 2]], "word": [b"a", b""],
        "ragged": [[1, 2], []], "deep": [[[1, 2], [3]], [[4]]], "words": [[b"a", b"b"], [b"c"]],
        "sparse": [[0, 1, 0], [2, 0, 3]], "sparse_words": [[b"", b"a"], [b"b", b""]],
    },
    {
        "x": [[4, 5], [6, 7]], "label": [0, 1], "id": [12, 13], "flag": [False, True],
        "brain": [2, 3], "byte": [[3, 4], [5, 6]], "word": [b"tundish", b"d"],
        "ragged": [[3], [4, 5, 6]], "deep": [[], [[5, 6], [7]]], "words": [[], [b"dd", b"ee"]],
        "sparse": [[0, 0, 0], [0, 0, 4]], "sparse_words": [[b"", b""], [b"", b"c"]],
    },
    {
        "x": [[8, 9]], "label": [1], "id": [14], "flag": [True],
        "brain": [-4], "byte": [[7, 8]], "word": [b"e"],
        "ragged": [[7]], "deep": [[[8]]], "words": [[b"f"]],
        "sparse": [[5, 0, 0]], "sparse_words": [[b"d", b"d"]],
    },
]  # fmt: skip
IDS = [batch["id"] for batch in BATCHES]

def empty_batch(server):
    """Of pipeline(replicas=2) the last batch of replica 1, which has no rows; and readers to be closed."""
    readers = [server.open("train", replica=replica) for replica in (0, 1)]
    for _ in BATCHES:
        batch = [reader.next() for reader in readers][1]
    return batch, readers
