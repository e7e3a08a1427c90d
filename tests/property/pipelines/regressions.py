"""What random pipelines have found, kept: the cause, and a small pipeline."""

from .generate import Pipeline


def _range(stop, name="value"):
    return {"range": {"start": 0, "stop": stop, "name": name}}


def _batch(size):
    return {"batch": {"batch_size": size}}


def regressions(folder):
    """{cause: pipeline}; folder: of small_files."""
    lists = {"list_files": {"file_pattern": f"{folder}/text/part-*", "seed": 3}}
    numbers = {"string_to_number": {"out_type": "int64", "columns": "value"}}
    reading = {"flat_map": {"dataset": [{"text_line": {"filenames": "$value"}}]}}
    rows = {"from_tensors": {"value": [1, 2]}}
    keep = {"filter": {"predicate": "size(value) > 1"}}
    growing = [
        {"range": {"start": 1000, "stop": 90000, "step": 1000}},
        {"flat_map": {"dataset": [_range("$value"), _batch(1000000)]}},
        {"ragged_batch": {"batch_size": 2}},
    ]
    return {
        "a batch whose rows differ in shape is skipped for several replicas too": Pipeline(
            [_range(7), _batch(2), _batch(4)], distribute={"replicas": 2}, deliver={"on_error": "skip"}
        ),
        "what a filter chooses may be cached": Pipeline(
            [_range(9), {"filter": {"predicate": "value % 2 == 0"}},
             {"cache": {"filename": f"{folder}/kept"}}, _batch(2)], ["value"]
        ),
        "a stage stands between a shuffled list of files and their reader": Pipeline(
            [lists, {"enumerate": {}}, reading, numbers, _batch(2)], ["value"], workers=2
        ),
        "a list of files is renamed before they are read": Pipeline(
            [lists, {"rename": {"value": "file"}},
             {"flat_map": {"dataset": [{"text_line": {"filenames": "$file"}}]}}, numbers, _batch(2)],
            ["value"], workers=2
        ),
        "rows that a filter chose are taken apart": Pipeline([rows, keep, {"unbatch": {}}, _batch(1)]),
        "rows that a filter chose are batched anew": Pipeline([rows, keep, {"rebatch": {"batch_size": 1}}]),
        "a reader's first shards of an evaluation are empty": Pipeline(
            [_range(7), _batch(2)], ["value"], readers=4,
            distribute={"auto_shard": "DATA", "evaluation_shards": 20}, deliver={"epochs": 2},
        ),
        "all shards of an evaluation are empty": Pipeline(
            [_range(0), _batch(2)], ["value"], readers=1,
            distribute={"auto_shard": "DATA", "evaluation_shards": 2}, deliver={"epochs": 3},
        ),
        "batches grow past the first, and one thread reads all replicas": Pipeline(
            growing, steps=100, distribute={"replicas": 2}, threads=4, in_turn=True
        ),
        "a plan of many stages is told": Pipeline(
            [_range(9)] + [{"map": {"value": [1, i]}} for i in range(70)] + [_batch(2)], ["value"]
        ),
        "lists are padded in a batch that has none": Pipeline(
            [_range(3), {"map": {"lists": "[value]"}}, {"filter": {"predicate": "value < 0"}},
             {"pad_or_truncate": {"columns": "lists", "length": 2}}, {"ragged_batch": {"batch_size": 2}}],
            distribute={"replicas": 2},
        ),
    }  # fmt: skip
