"""Dataset.stage: a stage as the pipeline file has it, for all that tf.data has no method for."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping
from typing import Any

from ..errors import PipelineError
from . import nest
from .dataset import Dataset
from .emit import Emission, document
from .graph import Column, Field, Name, Node, Origin, Spec, caller
from .trace import UnsupportedError
from .yaml_text import Variable

__all__ = ["by_hand"]

# The server cannot know the columns yet: something is to be learned, or the outer element's columns count.
_LATER = ("nothing was learned yet", "is a column of the outer element")

_VARIABLE = re.compile(r"\$[A-Za-z_][A-Za-z0-9_]*(\([0-9]+\))?")


def by_hand(before: Dataset | None, stage: str, parameters: Mapping[str, Any]) -> Dataset:
    """The dataset after a stage of the server's table; None before it: a source."""
    given = {name: _plain(value) for name, value in parameters.items()}
    inputs = () if before is None else (before.node,)
    for leaf in [] if before is None else nest.flatten(before.node.structure):
        leaf.name.is_chosen = True  # the parameters have it
    node = Node("by_hand", {"stage": stage, "parameters": given}, inputs, None, caller())
    node.structure = _structure(node, before)
    return Dataset(node)


def _plain(value: Any) -> Any:
    """Datasets as what they are made of, and $name as no text."""
    if isinstance(value, Dataset):
        return value.node
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if hasattr(value, "tolist") and not isinstance(value, Column):
        return value.tolist()
    return Variable(value) if isinstance(value, str) and _VARIABLE.fullmatch(value) else value


def _structure(node: Node, before: Dataset | None) -> Any:
    """The components after the stage, as the server tells them: those before it if it keeps their names, else
    a dictionary."""
    columns = _told(node)
    old = [] if before is None else nest.flatten(before.node.structure)
    if columns is None:
        parameters = node.params["parameters"]
        output = parameters if node.params["stage"] == "map" else parameters.get("output", [])
        added = [output] if isinstance(output, str) else list(output)
        columns = {**{leaf.name.text: Spec() for leaf in old}, **{name: Spec() for name in added}}
    if before is not None and [leaf.name.text for leaf in old] == list(columns):
        return nest.transform(lambda leaf: Field(leaf.name, columns[leaf.name.text]), before.node.structure)
    if list(columns) == ["value"] and before is None:
        return Field(Name("value", False), columns["value"])
    return {name: Field(Name(name), spec) for name, spec in columns.items()}


def _told(node: Node) -> dict[str, Spec] | None:
    """The columns after a stage; None: they cannot be known yet. Raises PipelineError if the server refuses it,
    UnsupportedError if what is before it cannot be written."""
    from .. import serving

    with tempfile.TemporaryDirectory(prefix="tundish-") as folder:
        emission = Emission(folder + os.sep)
        emission.is_part = True  # perhaps of a function of an outer element
        stages = emission.stages(node)
        if emission.unsupported:
            raise UnsupportedError(emission.unsupported)
        for name, content in emission.beside.files.items():
            with open(os.path.join(folder, name), "wb") as file:
                file.write(content)
        try:
            root = serving.outline(document({"train": (stages, {})}, named=emission.named), os.getcwd())
        except PipelineError as error:
            if emission.is_short or any(each in str(error) for each in _LATER):
                return None
            said = re.sub(r"^\S+pipeline\.yaml:\d+:\d+: ", f"{node.origin}: ", str(error), flags=re.MULTILINE)
            raise PipelineError(said) from None
    while root["put_in"] and root["inputs"]:
        root = root["inputs"][0]
    return {
        each["name"]: Spec(each["dtype"], tuple(each["shape"]), each["kind"]) for each in root["columns"]
    }
