"""Whether a run is what a case recorded, and if not, where they part."""

import json
from itertools import zip_longest

from . import column
from .case import is_error


def judge(case, run):
    """Sentences that say how the run differs from the case; none if it passes."""
    if case.is_refused:
        return _judge_refusal(case, run)
    if run.refusal is not None:
        return _judge_error_found_in_the_file(case, run)
    found = _judge_element_spec(case, run)
    for number, worker in enumerate(case.workers):
        got = run.workers.get(number)
        if got is None:
            found.append(f"worker {number}: nothing was delivered")
            continue
        where = f"worker {number}" if len(case.workers) > 1 else ""
        found += _judge_steps(case, worker, got, where)
        found += _labelled(where, _judge_end(worker.end, got.end))
    return found


def judge_artifacts(case, folder):
    """The same for the files that `tundish analyze` left in folder."""
    found = []
    for name, recorded in case.artifacts.items():
        path = folder / name
        if not path.is_file():
            found.append(f"artifact {name}: was not written")
        elif isinstance(recorded, str):
            found += _labelled(f"artifact {name}", _judge_text(recorded, path.read_bytes()))
        else:
            tolerance = case.tolerance.get(name)
            found += _labelled(f"artifact {name}", _judge_table(recorded, path, tolerance))
    return found


def _judge_refusal(case, run):
    if run.refusal is None:
        return ["the pipeline file should be refused, but it ran"]
    words = [word for worker in case.workers for word in worker.end.get("message_has", [])]
    return _absent_words(words, "\n".join(run.refusal))


def _judge_error_found_in_the_file(case, run):
    """What fails before the first step may as well be refused when the file is read."""
    message = "\n".join(run.refusal)
    if not all(is_error(worker.end) and not worker.has_steps for worker in case.workers):
        return [f"the pipeline file was refused: {message}"]
    words = [word for worker in case.workers for word in worker.end.get("message_has", [])]
    return _absent_words(words, message)


def _judge_element_spec(case, run):
    if case.element_spec is None:
        return []
    if run.element_spec is None:
        failed_at_start = all(is_error(w.end) and not w.has_steps for w in case.workers)
        return [] if failed_at_start else ["element_spec is not given"]
    names, got_names = list(case.element_spec), list(run.element_spec)
    if names != got_names:
        return [f"element_spec has the columns {got_names} instead of {names}"]
    found = []
    for name, recorded in case.element_spec.items():
        got = run.element_spec[name]
        found += _labelled(f"element_spec of {name}", _judge_spec(recorded, got))
    return found


def _judge_spec(recorded, got):
    pairs = [
        ("dtype", recorded["dtype"], got.get("dtype")),
        ("shape", recorded["shape"], got.get("shape")),
        ("kind", column.kind_of(recorded), column.kind_of(got)),
    ]
    if "ragged_rank" in recorded and "ragged_rank" in got:
        pairs.append(("ragged_rank", recorded["ragged_rank"], got["ragged_rank"]))
    return [f"{name} is {is_} instead of {was}" for name, was, is_ in pairs if was != is_]


def _judge_steps(case, worker, got, where):
    found = []
    for replica, epochs in enumerate(worker.replicas):
        got_epochs = got.steps.get(replica, {})
        for epoch in range(max([len(epochs), *(number + 1 for number in got_epochs)])):
            recorded = epochs[epoch] if epoch < len(epochs) else []
            place = [where] if where else []
            if len(worker.replicas) > 1:
                place.append(f"replica {replica}")
            if case.epochs > 1:
                place.append(f"epoch {epoch}")
            found += _labelled(
                ", ".join(place), _judge_epoch(recorded, got_epochs.get(epoch, []), case.tolerance)
            )
    for replica in sorted(set(got.steps) - set(range(len(worker.replicas)))):
        found.append(f"{where or 'worker 0'}: there is a replica {replica} too many")
    return found


def _judge_epoch(recorded, delivered, tolerance):
    found = []
    if len(recorded) != len(delivered):
        found.append(f"there are {len(delivered)} steps instead of {len(recorded)}")
    for step, (expected, got) in enumerate(zip(recorded, delivered)):
        found += _labelled(f"step {step}", _judge_step(expected, got, tolerance))
    return found


def _judge_step(recorded, delivered, tolerance):
    if list(recorded) != list(delivered):
        return [f"the columns are {list(delivered)} instead of {list(recorded)}"]
    found = []
    for name, expected in recorded.items():
        differences = column.differences(expected, delivered[name], tolerance.get(name))
        found += _labelled(name, differences)
    return found


def _judge_end(recorded, got):
    if not is_error(recorded):
        return [] if got == recorded else [f"the end is {_end(got)} instead of {_end(recorded)}"]
    if not is_error(got):
        return [f"the end is {_end(got)} instead of an error"]
    return _absent_words(recorded.get("message_has", []), got.get("message", ""))


def _judge_text(recorded, delivered):
    expected = recorded.encode("utf-8")
    if expected == delivered:
        return []
    lines = zip_longest(expected.splitlines(True), delivered.splitlines(True))
    for number, (was, is_) in enumerate(lines, start=1):
        if was != is_:
            return [f"line {number} is {is_!r} instead of {was!r}"]
    return ["line breaks differ"]


def _judge_table(recorded, path, tolerance):
    try:
        delivered = json.loads(path.read_text(encoding="utf-8"))
        return column.differences(recorded, delivered, tolerance)
    except (ValueError, AttributeError, TypeError) as error:
        return [f"is not a table in the form of a step's column: {error}"]


def _absent_words(words, message):
    absent = [word for word in words if word not in message]
    return [f"the message lacks {absent}: {message!r}"] if absent else []


def _end(end):
    return json.dumps(end) if isinstance(end, (dict, str)) else "absent"


def _labelled(label, sentences):
    return [f"{label}: {sentence}" if label else sentence for sentence in sentences]

