"""Whether a function of an InputContext gives one stream, whichever way its conditions go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .calls import Problem
from .context import PIPELINES
from .distribute import Distributed, Variant

# With one input pipeline it changes nothing.
_SHARD = {"shard": {"num_shards": PIPELINES, "index": "$input_pipeline_id"}}
_WORDS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}

Described = Callable[[Any], Any]


def differences(noted: Distributed, describe: Described) -> list[Problem]:
    """A problem for each condition that changes more than a pipeline file can say. describe: the stages of
    a dataset as plain values; None: they are incomplete, which is told elsewhere."""
    problems: list[Problem] = []
    general: Any = None
    for variant in noted.variants:
        own = describe(variant.dataset)
        if own is None:
            continue
        is_told = any(each.run.used for each in noted.variants)
        if variant.other is not None and not is_told and describe(variant.other) != own:
            problems.append(_by_numbers(noted))
        if general is None:
            general = own
        same = _unsharded(own) == _unsharded(general) if variant.run.is_of_one else own == general
        if not same:
            problems.append(_by_condition(noted.variants[0], variant))
    return problems


def _unsharded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _unsharded(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_unsharded(each) for each in value if each != _SHARD]
    return value


def _by_condition(general: Variant, variant: Variant) -> Problem:
    pairs = zip(general.run.asked, variant.run.asked, strict=False)
    asked = next(each for each, other in pairs if each.answer != other.answer)
    what = (asked.subject.text or "a computed number").removeprefix("$")
    other = getattr(asked.other, "formula", asked.other)
    return Problem(
        asked.origin,
        f"condition {what} {_WORDS[asked.operator]} {other}",
        "the stages differ by it, and a pipeline file has one list of stages for all workers",
        "make the same stages on all workers; dataset.shard(context.num_input_pipelines, "
        "context.input_pipeline_id) changes nothing with one worker and needs no condition",
    )


def _by_numbers(noted: Distributed) -> Problem:
    from . import datasets

    steps = datasets.steps_of(noted.dataset)
    return Problem(
        steps[0].origin if steps else ("<program>", 0),
        "the function of an InputContext",
        "with other numbers in the InputContext it makes other stages",
        "use the numbers themselves in shard and batch, and nowhere else",
    )
