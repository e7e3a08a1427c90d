"""What must be the same, however a pipeline is run."""

from collections import Counter

from .generate import KINDS, stage_names
from .play import Wrong

# Stages that neither choose nor join rows: whatever is cut before them, all rows come through.
_READERS = {name for reader, _, _ in KINDS.values() for name in reader}
_CHOOSE = {"take", "skip", "shard", "sample_from_datasets", "choose_from_datasets", "zip", "enumerate",
           "repeat", "window", "unbatch", "rebatch", "bucket_by_sequence_length", "list_files"}  # fmt: skip
# How a reader says what ended it, by the word of peek.
_ENDS = {"end": "END_OF_STREAM", "error": "E_DATA"}


def check(player, pipeline):
    """Run a pipeline in all the ways it asks for. Returns "refused", "failed" or "ended", as peek
    does; raises Wrong."""
    player.begin(pipeline)
    try:
        return _check(player, pipeline)
    finally:
        left = player.end()
        if left:
            raise Wrong(f"left in /dev/shm: {left}")


def _check(player, pipeline):
    peeked = player.peek(1)
    planned = player.plan()
    several = player.peek(pipeline.workers) if pipeline.workers > 1 else None
    as_planned = peeked if several is None else several
    if as_planned.refusal is None and as_planned.end != "error" and planned != 0:
        raise Wrong(f"plan ends with {planned}, but peek runs")
    if peeked.refusal is None:
        _require_spec(peeked)
        if several is not None and several.refusal is None:
            _require_spec(several)
            _compare_workers(pipeline, peeked, several)
    outcome = _compare_served(player, pipeline, peeked)
    return "refused" if peeked.refusal is not None else outcome


# --- batches against their spec -------------------------------------------------------------------


def _require_spec(peeked):
    for key, output in peeked.outputs.items():
        for epoch, step, columns in output.batches:
            if list(columns) != list(peeked.element_spec):
                raise Wrong(f"{key} {epoch}/{step}: columns {list(columns)}")
            for name, column in columns.items():
                _require_column(f"{key} {epoch}/{step} {name}", peeked.element_spec[name], column)


def _require_column(where, spec, column):
    # As in TensorFlow, what unbatch leaves of a ragged column is a tensor, and its spec of rank 0.
    if spec.get("ragged") and spec["ragged_rank"] == 0:
        spec = {**spec, "ragged": None}
    for word in ("dtype", "ragged", "sparse"):
        if spec.get(word) != column.get(word):
            raise Wrong(f"{where}: {word} is {column.get(word)} and {spec.get(word)} in the spec")
    shape = column.get("shape", column.get("dense_shape"))
    if shape is None:
        return
    if spec["shape"] is not None and (
        len(shape) != len(spec["shape"])
        or any(want not in (None, size) for want, size in zip(spec["shape"][1:], shape[1:]))
    ):
        raise Wrong(f"{where}: shape {shape}, and {spec['shape']} in the spec")


# --- several workers ------------------------------------------------------------------------------


def _compare_workers(pipeline, one, several):
    if pipeline.distribute.get("drop_remainder_step") or pipeline.distribute.get("from_function"):
        return
    if "max_steps" in (one.end, several.end) or "error" in (one.end, several.end):
        return
    copies = pipeline.workers if pipeline.distribute.get("auto_shard") == "OFF" else 1
    names = set(stage_names(pipeline.stages))
    by_file = pipeline.distribute.get("auto_shard", "AUTO") in ("AUTO", "FILE") and names & _READERS
    if by_file and (names & (_CHOOSE - {"list_files"}) or _drops(pipeline.stages)):
        return
    if pipeline.deliver.get("on_error", "stop") != "stop":
        return
    # Rows that lie between windows come in where windows are cut for several workers.
    if "window" in names:
        return
    expected = _rows(pipeline, one)
    for row in expected:
        expected[row] *= copies
    got = _rows(pipeline, several)
    if expected != got:
        raise Wrong(
            f"{pipeline.workers} workers: rows lost {_few(expected - got)}, more {_few(got - expected)}"
        )


def _drops(stages):
    return "drop_remainder" in str(stages) or "filename'" in str(stages)


def _rows(pipeline, peeked):
    """How often each row came, by epoch, told apart by the columns that say which row it is."""
    rows = Counter()
    for output in peeked.outputs.values():
        for epoch, _, columns in output.batches:
            for row in rows_of(pipeline, columns):
                rows[epoch, row] += 1
    return rows


def rows_of(pipeline, columns):
    """The rows of a batch as tuples, of those columns that are dense and have one number a row;
    without those that were repeated."""
    told = [columns[name] for name in pipeline.columns if name in columns]
    told = [column["values"] for column in told if len(column.get("shape", ())) == 1]
    rows = list(zip(*told))
    if "even" not in pipeline.distribute:
        return rows
    return [row for row, own in zip(rows, columns["mask"]["values"]) if own]


def _few(rows):
    return dict(list(rows.items())[:5])


# --- served ---------------------------------------------------------------------------------------


def _compare_served(player, pipeline, peeked):
    server = player.serve()
    if server is None:
        if peeked.refusal is None and peeked.end != "error":  # too few files, say
            raise Wrong(f"serve refuses what peek runs:\n{player.log_text()[-2000:]}")
        return "refused"
    if peeked.refusal is not None:
        raise Wrong(f"serve takes what peek refuses: {peeked.refusal}")
    steps = pipeline.steps if peeked.end == "max_steps" else 0
    if steps and not _is_lanes(pipeline):
        player.stop(server)
        return "ended"
    readers = player.start_readers(steps, survive=pipeline.kill_after > 0)
    if pipeline.kill_after:
        server, outputs = _killed(player, pipeline, server, readers, steps)
    else:
        readers.read()
        outputs = readers.outputs
    player.stop(server)
    _compare_outputs(pipeline, peeked, outputs)
    return "failed" if peeked.end == "error" else "ended"


def _is_lanes(pipeline):
    return pipeline.delivery != "queue" and "evaluation_shards" not in pipeline.distribute


def _killed(player, pipeline, server, readers, steps):
    """Kill the server after so many batches, and perhaps the readers, whose followers open at
    the places last printed."""
    while readers.count < pipeline.kill_after or not all(o.token for o in readers.outputs.values()):
        if not readers.read(readers.count + 1):
            return server, readers.outputs
    if pipeline.kill_readers:
        readers.kill()
    server.kill()
    server.wait()
    before = readers.outputs
    server = player.serve()
    if server is None:
        raise Wrong(f"the server does not come back:\n{player.log_text()[-2000:]}")
    if not pipeline.kill_readers:
        readers.read()
        return server, readers.outputs
    after = player.start_readers(0, survive=True, tokens={n: o.token for n, o in before.items()})
    return server, _joined(after, before, steps)


def _joined(after, before, steps):
    if steps:
        while min(len(before[n].batches) + len(o.batches) for n, o in after.outputs.items()) < steps:
            if not after.read(after.count + 1):
                break
        after.kill()
    else:
        after.read()
    for name, output in after.outputs.items():
        output.batches = (before[name].batches + output.batches)[: steps or None]
        output.ends += before[name].ends
    return after.outputs


def _compare_outputs(pipeline, peeked, outputs):
    if "evaluation_shards" in pipeline.distribute:
        _compare_shards(pipeline, peeked, outputs)
    elif pipeline.delivery == "queue":
        _compare_queue(pipeline, peeked, outputs)
    else:
        for name, output in outputs.items():
            replica = int(name.rsplit(":", 1)[1])
            _require_end(name, peeked, output)
            expected = peeked.outputs.get((0, replica))
            expected = expected.batches if expected else []
            if _may_end_early(pipeline, peeked):
                expected = expected[: len(output.batches)]
            _compare_batches(name, expected, output.batches)


def _may_end_early(pipeline, peeked):
    """Bad rows are counted as threads meet them, some steps ahead: so many too many are noticed there."""
    return peeked.end == "error" and pipeline.deliver.get("on_error", "").startswith("skip:")


def _require_end(name, peeked, output):
    wanted = _ENDS.get(peeked.end)
    if wanted and output.end != wanted:
        raise Wrong(
            f"{name}: ended with {output.end} ({output.message}), where peek says {peeked.end} "
            f"({peeked.message}), after {len(output.batches)} batches"
        )


def _compare_batches(name, expected, got):
    for i, (one, other) in enumerate(zip(expected, got)):
        if one != other:
            raise Wrong(f"{name}: batch {i}\nserved {_shown(other)}\npeeked {_shown(one)}")
    if len(expected) != len(got):
        raise Wrong(f"{name}: {len(got)} batches served, {len(expected)} peeked")


def _shown(batch):
    text = str(batch)
    return text if len(text) < 1500 else text[:1500] + " ..."


def _compare_queue(pipeline, peeked, outputs):
    got = sorted((batch for output in outputs.values() for batch in output.batches), key=lambda b: b[:2])
    for name, output in outputs.items():
        _require_end(name, peeked, output)
    expected = peeked.outputs[0, 0].batches if peeked.outputs else []
    if _may_end_early(pipeline, peeked):
        expected = expected[: len(got)]
    _compare_batches("the queue", expected, got)


def _compare_shards(pipeline, peeked, outputs):
    """Every shard is finished once, and together they are all rows."""
    if peeked.end == "error" or pipeline.deliver.get("on_error"):
        return
    finished = Counter()
    rows = Counter()
    for name, output in outputs.items():
        _require_end(name, peeked, output)
        for (epoch, _, columns), (shard, is_end) in zip(output.batches, output.shards):
            finished[epoch, shard] += is_end
            for row in rows_of(pipeline, columns):
                rows[epoch, row] += 1
    if any(count != 1 for count in finished.values()):
        raise Wrong(f"shards finished: {finished}")
    names = set(stage_names(pipeline.stages))
    if not names & _CHOOSE and not _drops(pipeline.stages) and rows != _rows(pipeline, peeked):
        expected = _rows(pipeline, peeked)
        raise Wrong(f"shards: rows lost {_few(expected - rows)}, more {_few(rows - expected)}")
