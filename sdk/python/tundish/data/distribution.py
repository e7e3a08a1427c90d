"""How a stream is dealt to replicas: tf.data.Options, tundish.distribute, InputContext."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from types import SimpleNamespace
from typing import Any

from ..options import refuse_unknown
from .dataset import Dataset
from .graph import Column, Field, Name, Node, Scope, Spec, caller

__all__ = [
    "CONTEXT", "AutoShardPolicy", "InputContext", "Options", "distribute", "variable", "with_options",
]  # fmt: skip

CONTEXT = Scope()  # of the variables that a stream from a function has
KEYS = (
    "replicas", "auto_shard", "rebatch", "delivery", "files", "groups", "drop_remainder_step",
    "evaluation_shards", "even", "mask",
)  # fmt: skip


class AutoShardPolicy(IntEnum):
    """tf.data.experimental.AutoShardPolicy"""

    OFF = -1
    AUTO = 0
    FILE = 1
    DATA = 2
    HINT = 3


class Options:
    """tf.data.Options: what it says about sharding counts; the rest changes no batch."""

    def __init__(self) -> None:
        self.deterministic: bool | None = None
        self.experimental_distribute = SimpleNamespace(auto_shard_policy=None, num_devices=None)
        self.experimental_optimization = SimpleNamespace()
        self.autotune = SimpleNamespace()
        self.threading = SimpleNamespace()


def with_options(dataset: Dataset, options: Any) -> Dataset:
    """Dataset.with_options"""
    policy = getattr(getattr(options, "experimental_distribute", None), "auto_shard_policy", None)
    if policy is None:
        return dataset
    return _with(dataset, {"distribute": {"auto_shard": AutoShardPolicy(int(policy)).name}})


def _with(dataset: Dataset, sections: dict[str, dict[str, Any]]) -> Dataset:
    node = dataset.node
    return Dataset(Node("sections", {}, (node,), node.structure, caller(), {"sections": sections}))


class InputContext:
    """tf.distribute.InputContext while a function is traced: variables of the pipeline file."""

    num_input_pipelines: Column
    input_pipeline_id: Column
    num_replicas_in_sync: Column

    def __init__(self) -> None:
        for name in ("num_input_pipelines", "input_pipeline_id", "num_replicas_in_sync"):
            setattr(self, name, variable(name))

    def get_per_replica_batch_size(self, global_batch_size: int) -> Column:
        """The batch size of a replica."""
        return variable(f"per_replica_batch_size({int(global_batch_size)})")


def variable(name: str) -> Column:
    """$name of a stream from a function."""
    spec = Spec("int64", ())
    return Column(None, spec, field=Field(Name(name), spec), scope=CONTEXT)


def distribute(
    dataset: Dataset | Callable[[InputContext], Dataset],
    *,
    deliver: dict[str, Any] | None = None,
    **options: Any,
) -> Dataset:
    """Say how a stream is dealt to replicas: its `distribute:`, and with deliver= its `deliver:`.

        ds = tundish.distribute(ds.batch(256), replicas=4, auto_shard="DATA")
        ds = tundish.distribute(lambda context: build().batch(context.get_per_replica_batch_size(256)))

    tundish.open() reads a data set of one replica. save() one of several, and start them by tundish-launch.
    A function is that of tf.distribute's distribute_datasets_from_function: its context has
    num_input_pipelines, input_pipeline_id, num_replicas_in_sync and get_per_replica_batch_size.
    Options are those of the pipeline file: replicas, auto_shard, rebatch, delivery, files, groups,
    drop_remainder_step, evaluation_shards, even, mask.
    """
    refuse_unknown("tundish.distribute()", options, ("deliver", *KEYS))
    if not isinstance(dataset, Dataset):
        dataset = dataset(InputContext())
        options["from_function"] = True
    defaults = {"replicas": 1, "auto_shard": "AUTO", "rebatch": "split", "delivery": "lanes"}
    given = {name: value for name, value in options.items() if value != defaults.get(name)}
    return _with(dataset, {"distribute": given, "deliver": deliver or {}})
