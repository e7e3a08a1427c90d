"""A recorded case: a pipeline file and, beside it, what TensorFlow delivered."""

import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class WorkerRecord:
    """What one worker delivered: per replica a list of epochs, each a list of steps."""

    replicas: list
    end: object  # "end", "max_steps" or a mapping for an error or a refusal

    @property
    def has_steps(self):
        return any(epoch for epochs in self.replicas for epoch in epochs)


@dataclass(frozen=True)
class Case:
    path: Path  # of the pipeline file
    root: Path  # where paths in it start
    epochs: int
    max_steps: int | None
    element_spec: dict | None
    workers: list
    artifacts: dict
    tolerance: dict

    @property
    def name(self):
        return str(self.path.relative_to(self.root).with_suffix(""))

    @property
    def needs_analysis(self):
        return bool(self.artifacts) or self.path.parent.name == "analyze"

    @property
    def is_refused(self):
        return any(is_refusal(worker.end) for worker in self.workers)


class BadCase(Exception):
    """The case itself cannot be read; that is a failure, never a skip."""


def is_refusal(end):
    return isinstance(end, dict) and bool(end.get("refused"))


def is_error(end):
    return isinstance(end, dict) and "error" in end


def find(folder):
    """Every pipeline file under folder with a record beside it, in order of path."""
    return [
        path
        for path in sorted(Path(folder).resolve().rglob("*.yaml"))
        if path.with_suffix(".json").is_file()
    ]


def load(path):
    try:
        record = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        workers = record.get("tundish", {}).get("workers", record["workers"])
        return Case(
            path=path,
            root=root_of(path),
            epochs=record.get("epochs", 1),
            max_steps=record.get("max_steps"),
            element_spec=record.get("element_spec"),
            workers=[_worker(worker) for worker in workers],
            artifacts=record.get("artifacts", {}),
            tolerance=record.get("tolerance", {}),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise BadCase(f"{path.with_suffix('.json')}: {type(error).__name__}: {error}") from error


def root_of(path):
    for folder in path.parents:
        if (folder / "data").is_dir():
            return folder
    raise BadCase(f"{path}: no folder above it has a data/")


def _worker(worker):
    return WorkerRecord([_epochs(steps) for steps in worker["replicas"]], worker["end"])


def _epochs(steps):
    epochs = [[]]
    for step in steps:
        if step == "epoch_end":
            epochs.append([])
        else:
            epochs[-1].append(step)
    return epochs
