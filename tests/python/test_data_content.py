"""Recorded cases of content, built stage by stage with tundish.tf and tundish.layers, give what
TensorFlow gave. The call that a stage stands for is the one that the tables name."""

import re
import unittest

import numpy
import test_data_recorded
import yaml
from tundish import tf
from tundish.data import Dataset, TFRecordDataset, TextLineDataset
from tundish.data.lowering import RULES, record
from tundish.data.lowering.rule import StageRule

# What a case has that no program says so.
SKIPPED = re.compile(
    r"\{column\}|\.\.|\$|\bif\b|\band\b|\bor\b|\bnot\b|_per_key|scaled|length\(|< .* <="
)
REFUSED = ("content/stack-in-expression-batch",)  # a column twice in one stack
METHODS = (
    "batch",
    "padded_batch",
    "ragged_batch",
    "unbatch",
    "take",
    "skip",
    "repeat",
    "shuffle",
    "rebatch",
)
BY_STAGE = {}
for rule in RULES.values():
    if isinstance(rule, StageRule) and rule.name not in ("tf.signal.stft", "tf.shape"):
        BY_STAGE.setdefault(rule.stage, rule)


class Loader(yaml.SafeLoader):
    """YAML 1.2: its numbers, and no `yes`."""


Loader.yaml_implicit_resolvers = {
    first: [
        (tag, each) for tag, each in resolvers if not tag.endswith((":bool", ":float", ":timestamp"))
    ]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("true|false"), list("tf"))
Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(
        r"[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?$|[-+]?\.inf$|\.nan$"
    ),
    list("-+.0123456789"),
)


def stages_of(text):
    """[(stage, its value)]"""
    dataset = yaml.load(text, Loader)["streams"]["case"]["dataset"]
    return [(each, None) if isinstance(each, str) else next(iter(each.items())) for each in dataset]


class NotBuilt(Exception):
    """No program says what the case has."""


def reduction(reduce, both=None):
    return lambda x, *rest, axis=None: (
        both(x, *rest) if rest and both else reduce(x, *rest, **({} if axis is None else {"axis": axis}))
    )


FUNCTIONS = {
    **{name: getattr(tf, name) for name in ("abs", "sign", "sqrt", "exp", "floor", "round", "sin", "cos", "tanh",
                                            "sigmoid", "pow", "where")},
    **{name: getattr(tf.math, name) for name in ("log", "log1p", "expm1", "ceil")},
    "isnan": tf.math.is_nan, "isfinite": tf.math.is_finite, "clip": tf.clip_by_value,
    "min": reduction(tf.reduce_min, tf.minimum), "max": reduction(tf.reduce_max, tf.maximum),
    "sum": reduction(tf.reduce_sum), "mean": reduction(tf.reduce_mean), "any": reduction(tf.reduce_any),
    "all": reduction(tf.reduce_all), "argmax": lambda x, axis: tf.argmax(x, axis),
    "stateless_uniform": lambda a, b, n=None: tf.random.stateless_uniform([] if n is None else [n], [a, b]),
    **{name: name for name in ("bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64",
                               "float16", "bfloat16", "float32", "float64", "string")},
    "cast": lambda x, dtype: tf.cast(x, dtype),
}  # fmt: skip


def build(stages):
    """The dataset of a case."""
    dataset = source(*stages[0])
    depth = 0
    for stage, params in stages[1:]:
        if stage in METHODS:
            dataset = order(dataset, stage, params)
            depth += stage in ("batch", "padded_batch", "ragged_batch")
        elif stage == "filter":
            text = params
            dataset = dataset.map(rowed).filter(lambda row: eval(text, {}, {**FUNCTIONS, **row}))
        else:
            change = content(stage, params, depth)
            dataset = dataset.map(lambda *element: change(rowed(*element)))
    return dataset


def rowed(*element):
    return element[0] if isinstance(element[0], dict) else {"value": element[0]}


def source(stage, params):
    if stage in ("from_tensor_slices", "from_tensors"):
        return getattr(Dataset, stage)({name: tensor(value) for name, value in params.items()})
    if stage == "range":
        return Dataset.range(*(params if isinstance(params, list) else [params]))
    readers = {"tfrecord": TFRecordDataset, "text_line": TextLineDataset}
    if stage not in readers or isinstance(params, dict):
        raise NotBuilt(stage)
    return readers[stage](params)


def tensor(value):
    if isinstance(value, dict):
        if "npy" in value:
            return numpy.load(value["npy"])
        return tf.constant(value["values"], value["dtype"])
    return value


def order(dataset, stage, params):
    if isinstance(params, dict):
        if any(
            not isinstance(params.get(name, {}), dict) for name in ("padded_shapes", "padding_values")
        ):
            raise NotBuilt("a value for the only column")
        return getattr(dataset, stage)(**params)
    return getattr(dataset, stage)(*([] if params is None else [params]))


def content(stage, params, depth):
    """The function of a row that the stage is."""
    if stage == "map":
        return lambda row: {
            **row,
            **{name: eval(text, {}, {**FUNCTIONS, **row}) for name, text in params.items()},
        }
    if stage == "select":
        return lambda row: {name: row[name] for name in listed(params)}
    if stage == "drop":
        return lambda row: {name: column for name, column in row.items() if name not in listed(params)}
    if stage == "rename":
        return lambda row: {params.get(name, name): column for name, column in row.items()}
    if stage in ("parse_example", "decode_csv"):
        return parse(stage, params, depth)
    return called(stage, params)


def listed(params):
    names = params["columns"] if isinstance(params, dict) else params
    return names if isinstance(names, list) else [names]


def called(stage, params):
    """A stage by the function that it is the namesake of."""
    rule = BY_STAGE.get("cast" if stage == "cast" else stage)
    name = "tf.cast" if stage == "cast" else rule and rule.name
    if name is None or stage == "to_dense" and "shape" in params:
        raise NotBuilt(stage)
    given = params if isinstance(params, dict) else {} if params is None else {first_of(stage): params}
    given = dict(given)
    columns, output = given.pop("columns", None), given.pop("output", None)
    names = {new: old for old, new in (rule.renamed if rule else {}).items()}
    given = {names.get(key, key): value for key, value in given.items()}
    joined = rule is not None and rule.joined
    if joined and stage == "concat":
        given.setdefault("axis", -1)
    if stage == "unicode_split":
        given.setdefault("input_encoding", "UTF-8")

    def change(row):
        own = list(row) if columns is None else listed({"columns": columns})
        beside = {key: row[given[key]] for key in (rule.beside if rule else ()) if given.get(key)}
        if joined:
            return {**row, output: record(name, ([row[each] for each in own],), given)}
        outputs = own if output is None else [output] if isinstance(output, str) else output
        made = {
            new: record(name, (row[old],), {**given, **beside}, object())
            for old, new in zip(own, outputs)
        }
        return {**row, **made}

    return change


def first_of(stage):
    return {"cast": "dtype", "one_hot": "depth", "decode_raw": "out_type", "reshape": "shape"}[stage]


def parse(stage, params, depth):
    if (
        "columns" in params
        or "serialized" in params
        or not isinstance(params.get("column_names", []), list)
    ):
        raise NotBuilt(stage)
    if stage == "decode_csv":
        given = {
            name: value
            for name, value in params.items()
            if name not in ("record_defaults", "column_names")
        }
        defaults = [default(each) for each in params["record_defaults"]]

        def split(row):
            columns = tf.io.decode_csv(row["value"], defaults, **given)
            rest = {name: column for name, column in row.items() if name != "value"}
            return {**rest, **dict(zip(params["column_names"], columns))}

        return split
    features = {value.get("key", name): feature(value) for name, value in params["features"].items()}
    if list(features) != list(params["features"]):
        raise NotBuilt("key")
    function = tf.io.parse_example if depth else tf.io.parse_single_example
    return lambda row: {
        **{k: v for k, v in row.items() if k != "value"},
        **function(row["value"], features),
    }


def default(entry):
    if isinstance(entry, dict):
        values = entry["values"] if isinstance(entry["values"], list) else [entry["values"]]
        return tf.constant(values, entry["dtype"])
    return (
        getattr(tf, entry)
        if isinstance(entry, str) and entry in FUNCTIONS and entry.islower()
        else [entry]
    )


def feature(entry):
    entry = dict(entry)
    kind = entry.pop("type")
    if kind == "Ragged":
        entry["partitions"] = [
            getattr(tf.io.RaggedFeature, *part)(*part.values()) for part in entry.get("partitions", [])
        ]
    if entry.pop("key", None):
        raise NotBuilt("key")
    return getattr(tf.io, kind + "Feature")(**entry)


class Content(test_data_recorded.Recorded):
    def run_area(self, area, least):
        count = 0
        for path in sorted((test_data_recorded.CASES / area).glob("*.yaml")):
            text = path.read_text()
            name = f"{area}/{path.stem}"
            if (
                name in REFUSED
                or SKIPPED.search(text)
                or '"refused": true' in path.with_suffix(".json").read_text()
            ):
                continue
            with self.subTest(name):
                tf.random.set_seed(yaml.load(text, Loader).get("seed"))
                try:
                    dataset = build(stages_of(text))
                except NotBuilt:
                    continue
                self.check(
                    name, test_data_recorded.Strategy(text).experimental_distribute_dataset(dataset)
                )
                count += 1
        self.assertGreaterEqual(count, least)

    def test_content(self):
        self.run_area("content", 250)

    def test_slices(self):
        self.run_area("slices", 40)


if __name__ == "__main__":
    unittest.main()
