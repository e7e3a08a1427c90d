"""What random cases have found, kept: the cause, and a smallest case."""

from .generate import Case


def _range(stop, name="a", start=0):
    return {"range": {"start": start, "stop": stop, "name": name}}


def _batch(size):
    return {"batch": {"batch_size": size}}


def _named(name):
    return [{"zip": {"datasets": [name]}}]


CASES = {
    "two mentions of a dataset draw in turn, also after a place": Case(
        [{"zip": {"datasets": ["d", [*_named("d"), {"rename": {"a": "b"}}]]}}],
        {"d": [_range(5), {"shuffle": {"buffer_size": 3}}, {"repeat": {"count": 3}}]},
    ),
    "a mention behind a shuffle makes its iterator after others": Case(
        [
            {"zip": {"datasets": ["early", "late"]}},
            {"shuffle": {"buffer_size": 3, "seed": 2}},
            {"repeat": {"count": 2}},
            {"skip": {"count": 7}},
        ],
        {
            "d": [_range(6), {"shuffle": {"buffer_size": 4, "seed": 7}}],
            "early": [*_named("d"), {"shuffle": {"buffer_size": 2, "seed": 1}}],
            "late": [*_named("d"), {"rename": {"a": "b"}}],
        },
    ),
    "an empty slice of rows that were joined from several batches has no rows": Case(
        [_range(1), {"padded_batch": {"batch_size": 1}}, {"rebatch": {"batch_size": 1}}],
        replicas=2,
    ),
    "a stage that looks across a rebatched batch sees all its rows": Case(
        [
            _range(6),
            _batch(2),
            {"rebatch": {"batch_size": 4}},
            {"map": {"a": [1, "total"]}},
        ],
        replicas=2,
    ),
    "a worker that is at its end while others go on can resume there": Case(
        [_range(1), _batch(2)], workers=3, rebatch="carry", from_workers=1, from_replicas=1
    ),
    "what a filter chooses has its input's columns inside a function": Case(
        [
            _range(4),
            {"filter": {"keep": ["a", 2, 1]}},
            {"flat_map": {"dataset": [_range("$a")]}},
        ]
    ),
    "numbers that choose datasets may be filtered": Case(
        [
            {
                "choose_from_datasets": {
                    "datasets": [[_range(3)], [_range(9, start=6)], [_range(13, start=10)]],
                    "choice_dataset": [_range(3, "c"), {"filter": {"keep": ["c", 3, 0]}}],
                }
            }
        ]
    ),
    "filtered lists may be put into buckets by their length": Case(
        [
            _range(7),
            {"window": {"size": 3, "shift": 1}},
            {"enumerate": {"start": 0}},
            {"filter": {"keep": ["index", 2, 1]}},
            {
                "bucket_by_sequence_length": {
                    "column": "a",
                    "bucket_boundaries": [2, 3],
                    "bucket_batch_sizes": [1, 1, 2],
                }
            },
        ]
    ),
    "what a cache holds can be made again whichever pass has filled it": Case(
        [
            {
                "choose_from_datasets": {
                    "datasets": [
                        [_range(2), {"shuffle": {"buffer_size": 9}}, {"cache": {"filename": ""}}]
                    ],
                    # Zeros, some more and some less: not every pass gets to its end.
                    "choice_dataset": [
                        _range(8, "c"),
                        {"shuffle": {"buffer_size": 8}},
                        {"take": {"count": 4}},
                        {"filter": {"keep": ["c", 2, 1]}},
                        {"map": {"c": [0, 0]}},
                    ],
                }
            },
        ],
        seed=21,
        epochs=4,
        from_workers=1,
        from_replicas=1,
    ),
    "a slice without rows may be of rows that were joined and taken apart again": Case(
        [_range(1), _batch(1), {"rebatch": {"batch_size": 1}}, {"unbatch": {}}, _batch(1)],
        replicas=2,
    ),
    "batches that were padded apart may follow each other": Case(
        [
            {
                "concatenate": {
                    "datasets": [
                        [_range(5), {"padded_batch": {"batch_size": 4}}],
                        [_range(4), {"padded_batch": {"batch_size": 3}}],
                    ]
                }
            }
        ],
        replicas=2,
        from_workers=1,
        from_replicas=1,
    ),
}
