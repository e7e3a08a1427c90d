"""tf.distribute: which datasets the program distributes, and how."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf
from tensorflow.python.distribute import distribute_lib

from . import datasets, dealing, origin
from .calls import Problem
from .context import Context, Run
from .datasets import Draws

_MOST_RUNS = 32
_AGAIN = "let it depend on nothing but the InputContext: TensorFlow calls it once for each worker"


@dataclass(eq=False)
class Variant:
    """The result of a function of an InputContext in one run of it. other: with other numbers, the answers
    being the same."""

    run: Run
    dataset: Any
    other: Any = None


@dataclass(eq=False)
class Distributed:
    """A dataset for a strategy: the sections of its stream, and what of it is not carried over.

    variants: of a dataset from a function one for each way that its conditions can go, the general one
    first, which `dataset` is of. function: that function, and where the program's generator stood when
    TensorFlow called it. is_per_worker: each worker of a parameter server has all of it.
    """

    dataset: Any
    sections: dict[str, Any]
    problems: list[Problem] = field(default_factory=list)
    variants: list[Variant] = field(default_factory=list)
    function: tuple[Any, Any] | None = None
    is_per_worker: bool = False


def patch() -> None:
    cls = distribute_lib.StrategyBase
    cls.experimental_distribute_dataset = _noting_dataset(cls.experimental_distribute_dataset)
    cls.distribute_datasets_from_function = _noting_function(cls.distribute_datasets_from_function)
    coordinator = tf.distribute.coordinator.ClusterCoordinator
    coordinator.create_per_worker_dataset = _noting_worker(coordinator.create_per_worker_dataset)


def distributed(value: Any) -> Distributed | None:
    found = getattr(value, "_tundish_distributed", None)
    return found if isinstance(found, Distributed) else None


def _replicas(strategy: Any) -> dict[str, Any]:
    here = int(strategy.num_replicas_in_sync)
    return {"replicas": here} if here > 1 else {}


def _options(options: Any, where: origin.Origin) -> list[Problem]:
    per_replica = tf.distribute.InputReplicationMode.PER_REPLICA
    if options is not None and options.experimental_replication_mode == per_replica:
        why = "each replica would have an iterator of its own"
        remedy = "leave InputOptions out, or write a stream for each replica"
        return [Problem(where, "InputReplicationMode.PER_REPLICA", why, remedy)]
    return []


def _noting_dataset(function: Any) -> Any:
    @functools.wraps(function)
    def distribute(self: Any, dataset: Any, options: Any = None) -> Any:
        where = origin.here()
        with datasets.unseen():  # TensorFlow maps the dataset once more, to cut its batches
            result = function(self, dataset, options)
        sections = {**_replicas(self), **dealing.rebatched(dataset)}
        noted = Distributed(dataset, sections, _options(options, where))
        return _with(result, noted)

    return distribute


def _noting_function(function: Any) -> Any:
    @functools.wraps(function)
    def distribute(self: Any, dataset_fn: Any, options: Any = None) -> Any:
        where = origin.here()
        found: list[Distributed] = []

        def symbolic(context: Any) -> Any:
            if isinstance(self, tf.distribute.ParameterServerStrategy):  # for all workers it is the same
                found.append(Distributed(dataset_fn(context), {}))
                return found[0].dataset
            noted, dataset = _explored(dataset_fn, context, where)
            found.append(noted)
            return dataset

        result = function(self, symbolic, options)
        noted = found[0]
        noted.sections = {**_replicas(self), "from_function": True}
        noted.problems += _options(options, where)
        return _with(result, noted)

    return distribute


def _explored(function: Any, context: Any, where: origin.Origin) -> tuple[Distributed, Any]:
    """The results of a function of an InputContext for all outcomes of its conditions, and its result here."""
    before = Draws.state()
    run = Run()
    try:
        here = function(Context(run, context))
    except Exception as error:  # whatever the program raises
        Draws.go_back(before)
        here = function(context)  # raises again if it is not because of what stands for the numbers
        return Distributed(here, {}, [_used(origin.raised(error) or where)]), here
    after = Draws.state()
    noted = Distributed(here, {}, function=(function, before))
    noted.variants.append(Variant(run, here))
    ways = list(run.others())
    try:
        _again(function, context, noted.variants[0], before)
        while ways:
            if len(noted.variants) == _MOST_RUNS:
                why = f"its conditions on the InputContext go more than {_MOST_RUNS} ways"
                noted.problems.append(Problem(where, "distribute_datasets_from_function", why, "ask less of it"))
                break
            Draws.go_back(before)
            run = Run(ways.pop())
            variant = Variant(run, function(Context(run, context)))
            noted.variants.append(variant)
            _again(function, context, variant, before)
            ways += run.others()
    except Exception as error:  # whatever the program raises
        why = f"with another InputContext it raises {type(error).__name__}: {error}"
        line = origin.raised(error) or where
        noted.problems.append(Problem(line, "the function of an InputContext", why, _AGAIN))
    Draws.go_back(after)
    noted.variants.sort(key=lambda each: each.run.is_of_one)
    noted.dataset = noted.variants[0].dataset
    used = {line for each in noted.variants for line in each.run.used}
    noted.problems += map(_used, sorted(used))
    return noted, here


def _used(line: origin.Origin) -> Problem:
    why = "a number of the InputContext is used as a plain number, which only this worker has"
    remedy = "give it to a method of the dataset as it is, or use get_per_replica_batch_size"
    return Problem(line, "InputContext", why, remedy)


def _again(function: Any, context: Any, variant: Variant, before: Any) -> None:
    """The same run with other numbers."""
    Draws.go_back(before)
    variant.other = function(Context(Run(variant.run.answers), context, others=True))


def _noting_worker(function: Any) -> Any:
    @functools.wraps(function)
    def per_worker(self: Any, dataset_fn: Any) -> Any:
        if distributed(dataset_fn) is not None or isinstance(dataset_fn, tf.data.Dataset):
            noted = distributed(dataset_fn) or Distributed(dataset_fn, {})
        else:
            noted = Distributed(dataset_fn(), {})
            noted = distributed(noted.dataset) or noted
        noted.sections = {"from_function": True}
        noted.is_per_worker = True
        return _with(_PerWorker(), noted)

    return per_worker


class _PerWorker:
    """In place of a cluster's dataset: no cluster is needed to port."""


def _with(result: Any, noted: Distributed) -> Any:
    result._tundish_distributed = noted
    return result
