"""Pipelines drawn at random, and written as a pipeline file.

A pipeline is a list of stages {name: arguments} as in the file, except that map's and filter's
expressions are lists of numbers (model.py), and every argument is written out.
"""

from dataclasses import dataclass, field

# Stages that move whole elements, whatever they are.
WHOLE = ("shuffle", "repeat", "take", "skip", "shard", "prefetch", "cache")
NEAR_ENOUGH = 90  # elements of a dataset, about, at most


@dataclass
class Case:
    stages: list
    named: dict = field(default_factory=dict)  # datasets, by name
    seed: int = 1
    workers: int = 1
    replicas: int = 1
    rebatch: str = "split"
    from_function: bool = False
    even: bool = False  # even: repeat
    epochs: int = 2
    steps: int = 24
    from_workers: int = 0  # whose places are resumed at
    from_replicas: int = 0
    threads: int = 1  # that make content

    @property
    def by_file(self):
        """Do workers have files of their own? Then places are good for as many workers alone."""
        bodies = [arguments.get("dataset", []) for stage in self.stages for arguments in stage.values()]
        return any("text_line" in stage for body in bodies for stage in body)

    @property
    def global_batch(self):
        """What the last batch says, where nothing but whole elements are moved behind it."""
        for stage in reversed(self.stages):
            ((name, arguments),) = stage.items()
            if name in ("batch", "padded_batch"):
                return arguments["batch_size"]
            if name not in WHOLE:
                raise ValueError(f"{name} behind the last batch")
        raise ValueError("no batch")

    def text(self):
        distribute = {"replicas": self.replicas, "rebatch": self.rebatch}
        if self.from_function:
            distribute["from_function"] = True
        elif not self.by_file:
            # AUTO would deal the elements of some lists as if they were files; recorded cases hold that.
            distribute["auto_shard"] = "DATA"
        if self.even:
            distribute["even"] = "repeat"
        stages = ", ".join(map(stage_text, self.stages))
        named = ", ".join(
            f"{name}: [{', '.join(map(stage_text, part))}]" for name, part in self.named.items()
        )
        datasets = f"datasets: {{{named}}}, " if named else ""
        return (
            f"{{seed: {self.seed}, {datasets}streams: {{case: {{dataset: [{stages}], "
            f"distribute: {_mapping(distribute)}}}}}}}"
        )


def _mapping(mapping):
    return "{" + ", ".join(f"{key}: {value_text(value)}" for key, value in mapping.items()) + "}"


def stage_text(stage):
    """A stage as it stands in a pipeline file."""
    ((name, arguments),) = stage.items()
    if name == "draw":
        return ", ".join(_layer(**arguments))
    if name == "map":
        arguments = {column: _expression(column, line) for column, line in arguments.items()}
    if name == "from_tensor_slices":
        arguments = {
            column: {"values": values, "dtype": "int64"} if isinstance(values, list) else values
            for column, values in arguments.items()
        }
    if name == "filter" and "keep" in arguments:
        column, by, rest = arguments["keep"]
        arguments = {"predicate": f"{column} % {by} != {rest}"}
    if name == "group_by_window":
        column, by = arguments["key"]
        arguments = {**arguments, "key": f"{column} % {by}"}
    return f"{{{name}: {_mapping(arguments)}}}"


def _layer(column, seed, called=None):
    """An image of two pixels, flipped at random, and its left pixel. called: a layer of that name."""
    again = f", draws: {called}, redraw: true" if called else ""
    yield f"{{map: {{{column}: \"cast({column} * 2, 'float32') + [0, 1]\"}}}}"
    yield f"{{reshape: {{columns: {column}, shape: [1, 2, 1]}}}}"
    yield f"{{random_flip: {{columns: {column}, seed: {seed}{again}}}}}"
    yield f"{{reshape: {{columns: {column}, shape: [2]}}}}"
    yield f"{{map: {{{column}: \"cast({column}[0], 'int64')\"}}}}"


def _expression(column, line):
    if isinstance(line, str):
        return line
    times, plus = line
    return f"{column} * {times} + " + (f"sum({column})" if plus == "total" else str(plus))


def value_text(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        is_stage = len(value) == 1 and isinstance(next(iter(value.values())), dict)
        return stage_text(value) if is_stage else _mapping(value)
    if isinstance(value, list):
        return "[" + ", ".join(map(value_text, value)) + "]"
    if isinstance(value, str) and not value.startswith("$"):
        return f'"{value}"'
    return "null" if value is None else str(value)


@dataclass
class Shape:
    """What is known of a dataset while it is made."""

    columns: list
    depth: int = 0
    size: float = 0  # elements, about; inf
    even: bool = True  # all elements have one shape
    outer: list = field(default_factory=list)  # columns of outer elements


class Generator:
    def __init__(self, random, files):
        """files: a pattern of files with a number a line, five of them."""
        self.random = random
        self.files = files
        self.names = 0
        self.named = {}

    def case(self):
        random = self.random
        self.names = 0
        self.named = {}
        kind = random.choice(["plain", "dealt", "dealt", "dealt", "function", "files"])
        if kind == "files":
            shape, stages = self._of_files()
        else:
            shape, stages = self._dataset(depth_left=2, kinds=None)
        case = Case(stages, self.named, seed=random.randrange(1000))
        if kind == "plain":
            case.from_workers = case.from_replicas = 1
        elif kind == "function":
            case.from_function = True
            case.replicas = case.from_replicas = random.randint(1, 4)
            case.from_workers = 1
        else:
            self._deal(case, shape)
        if shape.size == float("inf") and random.random() < 0.5:
            stages.append({"take": {"count": random.randint(0, 20)}})
        case.threads = random.randint(1, 8)
        return case

    def _deal(self, case, shape):
        random = self.random
        case.workers, case.replicas = random.randint(1, 3), random.randint(1, 4)
        case.from_workers, case.from_replicas = random.randint(1, 3), random.randint(1, 4)
        if random.random() < 0.7 or shape.depth == 0:
            size = random.randint(1, 9)
            if shape.even and not case.by_file and random.random() < 0.2:
                case.even = True
                case.from_workers, case.from_replicas = case.workers, case.replicas
                size = case.workers * case.replicas * random.randint(1, 3)
            else:
                case.rebatch = random.choice(["split", "carry"])
            self._final_batch(case, shape, size)
        for _ in range(random.randint(0, 2)):
            case.stages.append(self._pick_whole(shape))

    def _final_batch(self, case, shape, size):
        arguments = {"batch_size": size}
        if self.random.random() < 0.2:
            arguments["drop_remainder"] = True
        case.stages.append({"batch" if shape.even else "padded_batch": arguments})
        shape.size /= size
        shape.depth += 1

    def _of_files(self):
        random = self.random
        arguments = {"file_pattern": self.files}
        if random.random() < 0.5:
            arguments["shuffle"] = False
        elif random.random() < 0.5:
            arguments["seed"] = random.randrange(100)
        if random.random() < 0.2:
            arguments["reshuffle_each_iteration"] = False
        body = {"dataset": [{"text_line": {"filenames": "$value"}}]}
        if random.random() < 0.7:
            body["cycle_length"] = random.randint(1, 5)
            body["block_length"] = random.randint(1, 3)
        stages = [
            {"list_files": arguments},
            {"interleave" if "cycle_length" in body else "flat_map": body},
            {"string_to_number": {"out_type": "int64"}},
        ]
        shape = Shape(["value"], size=30)
        for _ in range(random.randint(0, 3)):
            stages.extend(self._some_stage(shape, 0, "keep"))
        return shape, stages

    # --- datasets ---------------------------------------------------------------------------

    def _name(self):
        self.names += 1
        return "abcdefghijklmnopqrstuvwxyz"[self.names % 26] + str(self.names)

    def _source(self, columns, outer):
        random = self.random
        if len(columns) == 1 and random.random() < 0.8:
            (name,) = columns
            if outer and random.random() < 0.5:
                stages = [{"range": {"start": 0, "stop": "$" + random.choice(outer), "name": name}}]
                return 6, stages + [{"take": {"count": random.randint(1, 6)}}]
            stop = random.choice([0, 1, 2, 3, 5, 8, 13, 21, 40])
            start = random.choice([0, 0, 0, 2, -3])
            step = random.choice([1, 1, 1, 3])
            stages = [{"range": {"start": start, "stop": stop, "step": step, "name": name}}]
            return max(0, -(-(stop - start) // step)), stages
        count = random.choice([1, 2, 3, 7, 12])
        rows = {name: [random.randrange(100) for _ in range(count)] for name in columns}
        return count, [{"from_tensor_slices": rows}]

    def _dataset(self, depth_left, kinds, columns=None, outer=()):
        """kinds None: anything goes; else only stages that keep the columns and their depth."""
        random = self.random
        shape = Shape(columns or [self._name()], outer=list(outer))
        if depth_left > 0 and random.random() < 0.4:
            stages = self._united(shape, depth_left, columns is not None)
        else:
            shape.size, stages = self._source(shape.columns, shape.outer)
            if random.random() < 0.1:
                stages.append({"permute": {"seed": random.randrange(9)}})
        for _ in range(random.choice([0, 1, 1, 2, 2, 3, 4, 6])):
            stages.extend(self._some_stage(shape, depth_left, kinds))
            if shape.size != float("inf") and shape.size > NEAR_ENOUGH:
                stages.append({"take": {"count": 60}})
                shape.size = 60
        if kinds is not None and shape.size == float("inf"):
            stages.append({"take": {"count": 9}})
            shape.size = 9
        return shape, stages

    def _united(self, shape, depth_left, keep_columns):
        random = self.random
        kind = random.choice(["zip", "concatenate", "choose_from_datasets", "sample_from_datasets"])
        count = random.randint(1 if kind == "zip" else 2, 3)
        if kind == "zip" and keep_columns:
            kind = "concatenate"
        if kind == "zip":
            parts = [self._dataset(depth_left - 1, "keep", outer=shape.outer) for _ in range(count)]
            if random.random() < 0.3:
                self._mention(parts[0], parts, rename=True)
            shape.columns = [name for part, _ in parts for name in part.columns]
            shape.size = min(part.size for part, _ in parts)
            return [{"zip": {"datasets": [stages for _, stages in parts]}}]
        parts = [
            self._dataset(depth_left - 1, "keep", shape.columns, shape.outer) for _ in range(count)
        ]
        if random.random() < 0.3:
            self._mention(parts[0], parts, rename=False)
        arguments = {"datasets": [stages for _, stages in parts]}
        shape.size = sum(part.size for part, _ in parts)
        if kind == "choose_from_datasets":
            length = random.randint(0, 25)
            arguments["choice_dataset"] = [
                {"range": {"start": 0, "stop": count, "name": "c"}},
                {"shuffle": {"buffer_size": 3, "seed": random.randrange(9)}},
                {"repeat": {"count": length // count + 1}},
            ]
            if random.random() < 0.5:
                arguments["stop_on_empty_dataset"] = False
            shape.size = min(shape.size, length + count)
        if kind == "sample_from_datasets":
            arguments["seed"] = random.randrange(100)
        return [{kind: arguments}]

    def _mention(self, part, parts, rename):
        """Give the first of the parts a name, and mention it again in others."""
        shape, stages = part
        text = ", ".join(map(stage_text, stages))
        if "$" in text or "random_flip" in text:
            return
        name = f"named_{self._name()}"
        self.named[name] = stages
        parts[0] = (shape, name)
        for i in range(1, len(parts)):
            again = Shape(list(shape.columns), size=shape.size)
            mention = name
            if rename or self.random.random() < 0.5:
                mention = [{"zip": {"datasets": [name]}}]
                if rename:
                    again.columns = [self._name() for _ in shape.columns]
                    mention.append({"rename": dict(zip(shape.columns, again.columns))})
                for _ in range(self.random.choice([0, 0, 1, 2])):
                    stage = self._pick_whole(again)
                    mention.append(stage)
                if again.size == float("inf"):
                    mention.append({"take": {"count": 9}})
                    again.size = 9
            if self.random.random() < 0.7:
                parts[i] = (again, mention)

    # --- stages -----------------------------------------------------------------------------

    def _some_stage(self, shape, depth_left, kinds):
        random = self.random
        choices = ["whole"] * 6 + ["map", "draw", "filter"]
        if kinds is None:
            choices += ["batch"] * 3 + ["enumerate"]
            if shape.depth > 0:
                choices += ["rows"] * 3
        if depth_left > 0 and shape.depth == 0 and shape.size != float("inf"):
            choices += ["interleave"] * 2
        kind = random.choice(choices)
        if kind == "whole":
            return [self._pick_whole(shape)]
        if kind == "map":
            plus = random.choice([0, 7, "total"] + ["$" + name for name in shape.outer])
            return [{"map": {random.choice(shape.columns): [random.choice([1, 1, 2]), plus]}}]
        if kind == "draw" and shape.depth == 0:
            layer = {"column": random.choice(shape.columns), "seed": random.randint(1, 99)}
            if random.random() < 0.4:
                layer.update(called="layer", seed=5)
            return [{"draw": layer}]
        if kind == "filter" and shape.depth == 0 and shape.size != float("inf"):
            by = random.randint(2, 5)
            keep = [random.choice(shape.columns), by, random.randrange(by)]
            return [{"filter": {"keep": keep}}]
        if kind == "enumerate" and shape.depth == 0 and "index" not in shape.columns:
            shape.columns = ["index", *shape.columns]
            return [{"enumerate": {"start": random.choice([0, 0, 10])}}]
        if kind == "batch" and shape.depth < 3:
            return [self._batch(shape)]
        if kind == "rows":
            return [self._rows(shape)]
        if kind == "interleave":
            return [self._interleave(shape, depth_left)]
        return []

    def _pick_whole(self, shape):
        random = self.random
        name = random.choices(WHOLE, weights=(5, 3, 2, 2, 2, 1, 1))[0]
        infinite = shape.size == float("inf")
        if name == "cache" and infinite:
            name = "prefetch"
        arguments = {}
        if name == "shuffle":
            arguments["buffer_size"] = random.choice([1, 2, 3, 4, 7, 12, 50])
            if random.random() < 0.6:
                arguments["seed"] = random.randrange(100)
            if random.random() < 0.2:
                arguments["reshuffle_each_iteration"] = False
        elif name == "repeat":
            arguments["count"] = random.choice([0, 1, 2, 2, 3, -1])
            count = float("inf") if arguments["count"] < 0 else arguments["count"]
            shape.size = shape.size * count if shape.size > 0 else 0
            if shape.outer and count == float("inf"):
                arguments["count"], shape.size = 2, 30
        elif name == "take":
            arguments["count"] = random.choice([0, 1, 2, 4, 7, 11, 20, -1])
            if arguments["count"] >= 0:
                shape.size = min(shape.size, arguments["count"])
        elif name == "skip":
            arguments["count"] = random.choice([0, 1, 2, 3, 5, 9, -1])
            shape.size = 0 if arguments["count"] < 0 else shape.size
        elif name == "shard":
            arguments["num_shards"] = random.randint(1, 4)
            arguments["index"] = random.randrange(arguments["num_shards"])
            shape.size /= arguments["num_shards"]
        elif name == "prefetch":
            arguments["buffer_size"] = random.randint(0, 3)
        else:
            arguments["filename"] = ""
        return {name: arguments}

    def _batch(self, shape):
        random = self.random
        size = random.choice([1, 2, 3, 4, 5])
        drop = random.random() < 0.4
        arguments = {"batch_size": size}
        if drop:
            arguments["drop_remainder"] = True
        if random.random() < 0.3 and shape.even:
            shape.even &= drop
            shape.depth += 1
            arguments["size"] = arguments.pop("batch_size")
            arguments["shift"] = random.randint(1, 4)
            arguments["stride"] = random.randint(1, 3)
            shape.size /= arguments["shift"]
            return {"window": arguments}
        if shape.depth == 0 and shape.size != float("inf") and random.random() < 0.2:
            shape.even &= drop
            shape.depth += 1
            key = [random.choice(shape.columns), random.randint(1, 4)]
            arguments = {"key": key, "window_size": size, "drop_remainder": drop}
            shape.size /= size
            return {"group_by_window": arguments}
        if shape.depth > 0 and not shape.even and random.random() < 0.4:
            shape.depth += 1
            arguments = {
                "column": random.choice(shape.columns),
                "bucket_boundaries": [2, 4],
                "bucket_batch_sizes": [random.randint(1, 3) for _ in range(3)],
                "drop_remainder": drop,
            }
            return {"bucket_by_sequence_length": arguments}
        name = "batch" if shape.even and random.random() < 0.9 else "padded_batch"
        shape.even = shape.even and drop
        shape.depth += 1
        shape.size /= size
        return {name: arguments}

    def _rows(self, shape):
        random = self.random
        if random.random() < 0.5:
            shape.depth -= 1
            shape.size *= 4
            shape.even = shape.even or shape.depth == 0
            return {"unbatch": {}}
        sizes = random.choice([1, 2, 3, 5, [1, 2], [3, 1, 2]])
        drop = random.random() < 0.3
        shape.even = shape.even and drop and not isinstance(sizes, list)
        return {"rebatch": {"batch_size": sizes, "drop_remainder": drop}}

    def _interleave(self, shape, depth_left):
        random = self.random
        outer = list(dict.fromkeys(shape.outer + [c for c in shape.columns if c != "index"]))
        body, stages = self._dataset(depth_left - 1, "keep", shape.columns, outer)
        shape.size *= max(body.size, 1)
        arguments = {"dataset": stages}
        if random.random() < 0.3:
            return {"flat_map": arguments}
        arguments["cycle_length"] = random.randint(1, 5)
        arguments["block_length"] = random.randint(1, 3)
        return {"interleave": arguments}


def variants(value):
    """Smaller things, nearest first, for shrinking: a stage less, a number less."""
    if isinstance(value, bool) or isinstance(value, str):
        return
    if isinstance(value, int):
        for smaller in (0, 1, value // 2, value - 1):
            if abs(smaller) < abs(value):
                yield smaller
    elif isinstance(value, list):
        for i in range(len(value)):
            if len(value) > 1:
                yield value[:i] + value[i + 1 :]
        for i, item in enumerate(value):
            for smaller in variants(item):
                yield value[:i] + [smaller] + value[i + 1 :]
    elif isinstance(value, dict):
        for key, item in value.items():
            if key in ("drop_remainder", "shift", "stride", "reshuffle_each_iteration", "seed"):
                yield {other: value[other] for other in value if other != key}
            for smaller in variants(item):
                yield {**value, key: smaller}
