"""tf.Transform's preprocessing_fn over the raw batches of a dataset.

Its mappers and analyzers become stages, whose statistics `tundish analyze` learns.
"""

from __future__ import annotations

import inspect
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import tensorflow as tf

from .. import serving
from . import datasets, functions, origin, program
from .program import ProgramFailed

__all__ = ["Transform", "patch"]

# They note facts for tf.Transform's own schema, or keep an object, and change no value.
_TRANSPARENT = ("make_and_track_object", "annotate_asset", "get_analyze_input_columns", "get_transform_input_columns")
# tf.Transform, by its minor version.
_TRIED = ("1.21",)


def patch() -> None:
    """Let tf.Transform's functions tell the trace that is under way. Raises ProgramFailed without it."""
    tft = _module()
    origin.add_library(os.path.dirname(tft.__file__))
    made: dict[Any, Any] = {}
    for name in tft.__all__:
        function = getattr(tft, name)
        is_patched = hasattr(function, "_tundish_real")
        if inspect.isfunction(function) and not is_patched and name not in _TRANSPARENT:
            plain = tf.autograph.experimental.do_not_convert(functions.recording(f"tft.{name}", function))
            made[function] = plain
    for module in (tft, tft.mappers, tft.analyzers):
        for name, function in list(vars(module).items()):
            if inspect.isfunction(function) and function in made:
                setattr(module, name, made[function])


def _module() -> Any:
    try:
        tft: Any = import_module("tensorflow_transform")
        import_module("tensorflow_transform.beam")
    except ImportError as error:
        raise ProgramFailed(f"tf.Transform cannot be imported ({error}): it is needed for --transform") from error
    if ".".join(tft.__version__.split(".")[:2]) not in _TRIED:
        tried = ", ".join(_TRIED)
        raise ProgramFailed(f"this is tf.Transform {tft.__version__}: it was tried with {tried}; run it there")
    return tft


class Computed:
    """The batches of a dataset as tf.Transform computes them. learned: gives the result of its analysis."""

    def __init__(self, raw: tf.data.Dataset, learned: Callable[[], Any]) -> None:
        self._dataset = raw
        self._learned = learned

    def __iter__(self) -> Iterator[Any]:
        return map(self._learned().transform_raw_features, self._dataset)


class Transform:
    """A preprocessing_fn, for all streams of a program. The first stream is the one that is learned from."""

    def __init__(self, target: str) -> None:
        self._function = program.function(target)
        self._folder = tempfile.TemporaryDirectory(prefix="tundish-port-")
        self._raw: dict[int, tf.data.Dataset] = {}
        self._learned: Any = None

    def traced(self, streams: dict[str, Any]) -> dict[str, tf.data.Dataset]:
        """The datasets with the function mapped over them. They cannot be iterated: nothing is learned."""
        return {name: self._traced(raw) for name, raw in streams.items()}

    def _traced(self, raw: Any) -> tf.data.Dataset:
        graph_context: Any = import_module("tensorflow_transform.graph_context")
        _check_batches(raw)
        with program.telling(), graph_context.TFGraphContext(tf.Module(), self._folder.name, {}):
            # As tf.Transform does: without AutoGraph.
            made = raw.map(tf.autograph.experimental.do_not_convert(self._function))
        _place(datasets.step_of(made), self._function)
        self._raw[id(made)] = raw
        return made

    def analyze(self, file: Path) -> None:
        """Let Tundish learn for a pipeline file, and tf.Transform, before their batches are compared."""
        serving.analyze(file, root=os.getcwd())
        self._learned = self._learn(next(iter(self._raw.values())))

    def computed(self, traced: tf.data.Dataset) -> Computed:
        """The batches of one of the datasets."""
        return Computed(self._raw[id(traced)], lambda: self._learned)

    def _learn(self, raw: tf.data.Dataset) -> Any:
        tft, beam = _module(), import_module("apache_beam")
        tensor_adapter, tensor_to_arrow = (
            import_module(f"tfx_bsl.tfxio.{name}") for name in ("tensor_adapter", "tensor_to_arrow")
        )
        if raw.cardinality() == tf.data.INFINITE_CARDINALITY:
            raise ProgramFailed("the dataset never ends, so that tf.Transform cannot learn from it: leave repeat() out")
        arrow = tensor_to_arrow.TensorsToRecordBatchConverter(raw.element_spec)
        schema = tensor_adapter.TensorAdapterConfig(arrow.arrow_schema(), arrow.tensor_representations())
        batches = [arrow.convert(element) for element in raw]
        options = beam.options.pipeline_options.PipelineOptions(["--direct_num_workers=1"])
        with beam.Pipeline(runner="DirectRunner", options=options) as pipeline, tft.beam.Context(
            temp_dir=self._folder.name, force_tf_compat_v1=False
        ):
            made = pipeline | beam.Create(batches, reshuffle=False)
            learned = (made, schema) | tft.beam.AnalyzeDataset(self._function)
            learned | tft.beam.WriteTransformFn(self._folder.name)
        return tft.TFTransformOutput(self._folder.name)


def _place(step: Any, function: Any) -> None:
    """A call that belongs to none of the function's lines is on its first."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is not None:
        step.origin = step.arguments["map_func"].origin = (code.co_filename, code.co_firstlineno)


def _check_batches(raw: Any) -> None:
    if not isinstance(raw, tf.data.Dataset):
        raise ProgramFailed("preprocessing_fn follows on a tf.data.Dataset, not on a distributed one")
    spec = raw.element_spec
    if not isinstance(spec, Mapping):
        raise ProgramFailed("preprocessing_fn takes a dictionary of columns, and the dataset's elements are none")
    columns: dict[str, Any] = {**spec}
    for name, each in columns.items():
        if each.shape.rank == 0 or each.shape.rank is not None and each.shape[0] is not None:
            raise ProgramFailed(
                f"preprocessing_fn takes batches, and {name} of the dataset has shape {each.shape}: "
                "batch the dataset first"
            )
