"""tf.distribute: which datasets the program distributes, and how."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf
from tensorflow.python.distribute import distribute_lib

from . import origin
from .calls import Problem


class Symbol(int):
    """A number of an InputContext: what it is here, and its name in a pipeline file. What is computed
    from it has no name there."""

    text: str | None

    def __new__(cls, value: int, text: str | None) -> Symbol:
        made = super().__new__(cls, value)
        made.text = text
        return made

    def __gt__(self, other: Any) -> bool:
        # `if context.num_input_pipelines > 1: ds = ds.shard(...)`: with one it changes nothing.
        return True if self.text == "$num_input_pipelines" and other == 1 else int(self) > other

    def __repr__(self) -> str:
        return self.text or super().__repr__()


def _computed(name: str) -> Any:
    plain = getattr(int, name)

    def method(self: Symbol, *others: Any) -> Any:
        result = plain(self, *others)
        return Symbol(result, None) if isinstance(result, int) and not isinstance(result, bool) else result

    return method


for _name in ("add", "sub", "mul", "floordiv", "mod", "radd", "rsub", "rmul", "rfloordiv", "rmod"):
    setattr(Symbol, f"__{_name}__", _computed(f"__{_name}__"))


class Context(tf.distribute.InputContext):  # type: ignore[misc]
    """An InputContext whose numbers have names."""

    @property
    def num_input_pipelines(self) -> Any:
        return Symbol(super().num_input_pipelines, "$num_input_pipelines")

    @property
    def input_pipeline_id(self) -> Any:
        return Symbol(super().input_pipeline_id, "$input_pipeline_id")

    @property
    def num_replicas_in_sync(self) -> Any:
        return Symbol(super().num_replicas_in_sync, "$num_replicas_in_sync")

    def get_per_replica_batch_size(self, global_batch_size: int) -> Any:
        size = super().get_per_replica_batch_size(global_batch_size)
        return Symbol(size, f"$per_replica_batch_size({int(global_batch_size)})")


@dataclass(eq=False)
class Distributed:
    """A dataset for a strategy: the sections of its stream, and what of it is not carried over."""

    dataset: Any
    sections: dict[str, Any]
    problems: list[Problem] = field(default_factory=list)


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
        result = function(self, dataset, options)
        noted = Distributed(dataset, _replicas(self), _options(options, where))
        return _with(result, noted)

    return distribute


def _noting_function(function: Any) -> Any:
    @functools.wraps(function)
    def distribute(self: Any, dataset_fn: Any, options: Any = None) -> Any:
        where = origin.here()
        made: list[Any] = []

        def symbolic(context: Any) -> Any:
            dataset = dataset_fn(
                Context(context.num_input_pipelines, context.input_pipeline_id, context.num_replicas_in_sync)
            )
            made.append(dataset)
            return dataset

        result = function(self, symbolic, options)
        noted = Distributed(made[0], {**_replicas(self), "from_function": True}, _options(options, where))
        return _with(result, noted)

    return distribute


def _noting_worker(function: Any) -> Any:
    @functools.wraps(function)
    def per_worker(self: Any, dataset_fn: Any) -> Any:
        if distributed(dataset_fn) is not None or isinstance(dataset_fn, tf.data.Dataset):
            noted = distributed(dataset_fn) or Distributed(dataset_fn, {})
        else:
            noted = Distributed(dataset_fn(), {})
            noted = distributed(noted.dataset) or noted
        noted.sections["from_function"] = True
        return _with(_PerWorker(), noted)

    return per_worker


class _PerWorker:
    """In place of a cluster's dataset: no cluster is needed to port."""


def _with(result: Any, noted: Distributed) -> Any:
    result._tundish_distributed = noted
    return result
