"""Whole pipelines drawn at random: every source, order and content stage, and how they are served."""

from dataclasses import dataclass, field, fields

from order.generate import Generator, Shape, stage_text, value_text

from .content import Content

PARTS = 5  # files of each kind, beside the bad one

_EXAMPLE = [{"parse_example": {"features": {
    "value": {"type": "FixedLen", "dtype": "int64", "shape": []},
    "pair": {"type": "FixedLen", "dtype": "float32", "shape": [2]},
    "tags": {"type": "VarLen", "dtype": "int64"},
    "word": {"type": "FixedLen", "dtype": "string", "shape": []},
}}}]  # fmt: skip
_IN_EXAMPLE = {"pair": "vector", "tags": "sparse", "word": "text"}
_JSON = {"features": {
    "value": {"type": "FixedLen", "dtype": "int64", "shape": []},
    "word": {"type": "FixedLen", "dtype": "string", "shape": []},
    "tags": {"type": "Ragged", "dtype": "int64"},
}}  # fmt: skip
_CSV = {"record_defaults": [{"values": 0, "dtype": "int64"}, 0.5, "-"],
        "column_names": ["value", "weight", "word"]}
_NUMBER = [{"string_to_number": {"out_type": "int64", "columns": "value"}}]

# Of each kind of file: the stage that reads it, those that make `value` a number, and what else
# there is then.
KINDS = {
    "text": ({"text_line": {}}, _NUMBER, {}),
    "text-gzip": ({"text_line": {"compression_type": "GZIP"}}, _NUMBER, {}),
    "csv": ({"csv": _CSV}, [], {"weight": "float", "word": "text"}),
    "csv-gzip": ({"csv": {**_CSV, "compression_type": "GZIP"}}, [], {"weight": "float", "word": "text"}),
    "tfrecord": ({"tfrecord": {}}, _EXAMPLE, _IN_EXAMPLE),
    "tfrecord-gzip": ({"tfrecord": {"compression_type": "GZIP"}}, _EXAMPLE, _IN_EXAMPLE),
    "tfrecord-zlib": ({"tfrecord": {"compression_type": "ZLIB"}}, _EXAMPLE, _IN_EXAMPLE),
    "json": ({"text_line": {}}, [{"decode_json": _JSON}], {"word": "text", "tags": "ragged"}),
    "fixed": ({"fixed_length_record": {"record_bytes": 8}},
              [{"decode_raw": {"out_type": "int64", "columns": "value"}},
               {"reshape": {"shape": [], "columns": "value"}}], {}),
    "webdataset": ({"webdataset": {"columns": {"value": "n", "image": "png"}}},
                   [*_NUMBER, {"drop": {"columns": "__key__"}},
                    {"decode_png": {"columns": "image", "channels": 3}}],
                   {"image": "image"}),
}  # fmt: skip


@dataclass
class Pipeline:
    """A pipeline file, and how it is served and read."""

    stages: list
    columns: list = field(default_factory=list)  # of numbers that say which row it is
    seed: int | None = 1
    distribute: dict = field(default_factory=dict)
    deliver: dict = field(default_factory=dict)
    workers: int = 1  # that peek plays
    threads: int = 1
    readers: int = 2  # of a queue, an evaluation, or sessions of their own
    steps: int = 40  # of all epochs, at most
    in_turn: bool = False  # one thread reads all replicas
    kill_after: int = 0  # batches; 0: the server lives
    kill_readers: bool = False  # with it
    state: bool = False
    seed_option: int = 5  # of what has no seed in the file

    @property
    def replicas(self):
        return self.distribute.get("replicas", 1)

    @property
    def groups(self):
        return self.distribute.get("groups", 1)

    @property
    def epochs(self):
        return self.deliver.get("epochs", 1)

    @property
    def delivery(self):
        return self.distribute.get("delivery", "lanes")

    def knobs(self):
        """What is not in the file."""
        in_file = ("stages", "columns", "distribute", "deliver")
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name not in in_file}

    def text(self):
        deliver = {"epochs": self.epochs, **self.deliver}  # without, there would be no end
        seed = "" if self.seed is None else f"seed: {self.seed}\n"
        stages = "".join(f"      - {stage_text(stage)}\n" for stage in self.stages)
        return (
            f"{seed}streams:\n  case:\n    dataset:\n{stages}"
            f"    distribute: {value_text(self.distribute)}\n    deliver: {value_text(deliver)}\n"
        )


def stage_names(stages):
    """The names of all stages, those of inner datasets too."""
    for stage in stages:
        if isinstance(stage, str):  # without parameters
            yield stage
            continue
        ((name, arguments),) = stage.items()
        yield name
        yield from _inner_names(arguments)


def _inner_names(value):
    if isinstance(value, dict):
        for name in ("dataset", "datasets", "choice_dataset"):
            inner = value.get(name)
            if isinstance(inner, list):
                for one in inner if name == "datasets" else [inner]:
                    yield from [] if isinstance(one, str) else stage_names(one)


class PipelineGenerator(Generator):
    """The order stages are the generator's of order/; sources and content come from here."""

    def __init__(self, random, folder):
        super().__init__(random, None)
        self.folder = folder
        self.content = Content(random, self._name)

    def pipeline(self):
        random = self.random
        self.names = 0
        self.is_bad = random.random() < 0.15
        if random.random() < 0.02:
            stages, columns = self._growing(), ["value"]
        else:
            stages, columns = self._stages()
        pipeline = Pipeline(stages, columns, deliver=self._deliver())
        pipeline.threads = random.randint(1, 4)
        self._distribute(pipeline)
        # Without a seed in the file, sessions of their own draw their own.
        if random.random() < 0.2 and not pipeline.distribute.get("from_function"):
            pipeline.seed = None
        if pipeline.distribute.get("from_function") and self._is_random(pipeline):
            pipeline.distribute.pop("from_function")
        return pipeline

    @staticmethod
    def _is_random(pipeline):
        """Unseeded layers, which draw their own in each session."""
        return any(name.startswith("random_") for name in stage_names(pipeline.stages))

    def _stages(self):
        random = self.random
        self.extras = {}
        if random.random() < 0.3:
            shape, stages = self._of_files()
        else:
            shape, stages = self._dataset(depth_left=2, kinds=None)
        if shape.depth == 0 or random.random() < 0.3:
            self._content(shape, stages)
            if random.random() < 0.9:
                stages.append(self._batch(shape))
        self._content(shape, stages)
        for _ in range(random.randint(0, 2)):
            stages.append(self._pick_whole(shape))
        if shape.size == float("inf") and random.random() < 0.5:
            stages.append({"take": {"count": random.randint(0, 20)}})
        return stages, list(shape.columns)

    def _growing(self):
        """Batches that are far larger than the first one."""
        random = self.random
        step = random.choice([500, 1000, 2000])
        inner = [{"range": {"start": 0, "stop": "$value"}}, {"batch": {"batch_size": 1000000}}]
        return [
            {"range": {"start": step, "stop": random.randint(1, 40) * step, "step": step}},
            {"flat_map": {"dataset": inner}},
            {"shuffle": {"buffer_size": random.choice([1, 1, 9])}},
            {"ragged_batch": {"batch_size": random.randint(1, 3)}},
        ]

    # --- sources ----------------------------------------------------------------------------

    def _source(self, columns, outer):
        random = self.random
        if len(columns) == 1 and not outer and random.random() < 0.3:
            return self._file_source(columns[0])
        return super()._source(columns, outer)

    def _file_source(self, column):
        random = self.random
        files = [random.randrange(PARTS) for _ in range(random.randint(1, 3))]
        if random.random() < 0.2:
            path = f"{self.folder}/npy/part-{files[0]}"
            return 8, [{"from_tensor_slices": {column: {"npy": path}}}]
        kind = random.choice(list(KINDS))
        names = [f"{self.folder}/{kind}/part-{i}" for i in files]
        if self.is_bad and random.random() < 0.5:
            names[-1] = f"{self.folder}/{kind}/bad"
        reader, parse, extras = KINDS[kind]
        ((name, arguments),) = reader.items()
        stages = [{name: {"filenames": names, **arguments}}, *parse, *self._keep(extras)]
        return 8 * len(files), stages + [{"rename": {"value": column}}]

    def _keep(self, extras):
        """Some of what a file has beside its number: at the top of a pipeline alone, where nothing
        is joined with others."""
        if self.depth_of_sources > 0 or self.random.random() < 0.4:
            return [{"select": {"columns": ["value"]}}]
        self.extras.update(extras)
        return []

    def _dataset(self, depth_left, kinds, columns=None, outer=()):
        self.depth_of_sources = 0 if kinds is None and columns is None and not outer else 1
        shape, stages = super()._dataset(depth_left, kinds, columns, outer)
        return shape, stages

    def _of_files(self):
        """A list of files, perhaps changed, and a reader of each."""
        random = self.random
        kind = random.choice(list(KINDS))
        reader, parse, extras = KINDS[kind]
        pattern = f"{self.folder}/{kind}/{'*' if self.is_bad else 'part-*'}"
        listed = {"file_pattern": pattern}
        if random.random() < 0.5:
            listed["shuffle"] = False
        elif random.random() < 0.7:
            listed["seed"] = random.randrange(9)
        between, name = random.choice([
            ([], "$value"), ([], "$value"), ([], "$value"), ([], "$value"),
            ([{"enumerate": {}}], "$value"),
            ([{"map": {"value": "value"}}], "$value"),
            ([{"map": {"file": "value"}}], "$value"),
            ([{"rename": {"value": "file"}}], "$file"),
            ([{"filter": {"predicate": "length(value) > 3"}}], "$value"),
            ([{"take": {"count": 3}}], "$value"),
            ([{"cache": {"filename": ""}}], "$value"),
            ([{"repeat": {"count": 2}}], "$value"),
        ])  # fmt: skip
        ((reader_name, arguments),) = reader.items()
        inner = [{reader_name: {"filenames": name, **arguments}}]
        parse = [*parse, {"select": {"columns": ["value"]}}] if random.random() < 0.4 else parse
        if "select" not in stage_names(parse):
            self.extras.update(extras)
        body = {"dataset": inner + (parse if random.random() < 0.4 else [])}
        flat = random.random() < 0.4
        if not flat:
            body.update(cycle_length=random.randint(1, 4), block_length=random.randint(1, 2))
        stages = [{"list_files": listed}, *between, {"flat_map" if flat else "interleave": body}]
        stages += [] if len(body["dataset"]) > 1 else parse
        shape = Shape(["value"], size=25)
        for _ in range(random.randint(0, 3)):
            stages.extend(self._some_stage(shape, 0, None))
        return shape, stages

    # --- stages -----------------------------------------------------------------------------

    def _content(self, shape, stages):
        for _ in range(self.random.choice([0, 0, 1, 1, 2, 3])):
            stages.extend(self.content.stages(shape, self.extras))

    def _some_stage(self, shape, depth_left, kinds):
        if kinds is None and self.random.random() < 0.2:
            return self.content.stages(shape, self.extras)
        return super()._some_stage(shape, depth_left, kinds)

    def _interleave(self, shape, depth_left):
        self.extras.clear()
        return super()._interleave(shape, depth_left)

    def _batch(self, shape):
        """Uneven rows are batched by those that can; here and there by one that cannot."""
        random = self.random
        uneven = [name for name, kind in self.extras.items() if kind in ("ragged", "sparse")]
        if random.random() < (0.3 if self.is_bad else 0.05):
            shape.even = True
        elif uneven and random.random() < 0.6:
            shape.depth += 1
            shape.even = False
            return {"ragged_batch": {"batch_size": random.randint(1, 5)}}
        return super()._batch(shape)

    # --- how it is served -------------------------------------------------------------------

    def _deliver(self):
        random = self.random
        deliver = {"epochs": random.choice([1, 1, 2])}
        if random.random() < 0.3:
            deliver["slots"] = random.randint(3, 5)
        deliver["compression"] = random.choice(["none", "narrow", "zstd", "auto", "zstd:3"])
        if random.random() < 0.2:
            deliver["memory"] = "memfd"
        if random.random() < 0.3:
            deliver["checksums"] = True
        if random.random() < (0.6 if self.is_bad else 0.1):
            deliver["on_error"] = random.choice(["skip", "skip", "skip:2"])
        return deliver

    def _distribute(self, pipeline):
        random = self.random
        distribute = pipeline.distribute
        kind = random.choice(["lanes"] * 9 + ["queue", "broadcast", "evaluation", "function"])
        if kind == "lanes":
            distribute["replicas"] = random.choice([1, 1, 2, 2, 3])
            distribute["rebatch"] = random.choice(["split", "split", "carry", "tensorflow"])
            distribute["drop_remainder_step"] = random.random() < 0.1
            if random.random() < 0.15:
                distribute |= {"even": "repeat", "drop_remainder_step": False, "rebatch": "split"}
        elif kind == "function":
            distribute["from_function"] = True
        elif kind == "evaluation":
            distribute["evaluation_shards"] = random.choice([1, 2, 3, 7, 20])
            distribute["auto_shard"] = "DATA"
        else:
            distribute["delivery"] = kind
        if kind in ("lanes", "broadcast") and random.random() < 0.15:
            distribute["groups"] = 2
        if kind in ("lanes", "queue") and random.random() < 0.6:
            distribute["auto_shard"] = random.choice(["AUTO", "FILE", "DATA", "DATA", "OFF"])
        pipeline.workers = random.choice([1, 1, 2, 3]) if kind in ("lanes", "queue") else 1
        pipeline.readers = random.randint(1, 4)
        pipeline.in_turn = kind in ("lanes", "broadcast", "function") and random.random() < 0.3
        if kind == "lanes" and random.random() < 0.12:
            pipeline.kill_after = random.randint(1, 12)
            pipeline.kill_readers = random.random() < 0.5
            pipeline.state = random.random() < 0.4
            distribute["groups"] = 1
            # How many bad rows there may be is counted anew by each server.
            pipeline.deliver["on_error"] = "stop"
