"""Recorded cases written with tundish.data give what TensorFlow gave.

Many cases say with which TensorFlow expression they were recorded. That expression runs here as it
stands, with tundish.tf for tf; the rest are in data_programs.py.
"""

import json
import os
import re
import sys
import tempfile
import unittest
from pathlib import Path

import rig

import numpy
import tundish
from tundish import tf
from tundish.data import nest

sys.path.insert(0, str(rig.REPOSITORY / "tests" / "conformance"))

from runner import case as cases
from runner import verdict
from runner.tundish import Tundish

CASES = rig.REPOSITORY / "tests" / "conformance" / "cases"


def recorded(area):
    """The cases of an area that have an expression."""
    for path in sorted((CASES / area).glob("*.json")):
        record = json.loads(path.read_text())
        if "call" in record:
            yield f"{area}/{path.stem}", record["call"]


class Recorded(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="tundish-data-")
        cls.addClassCleanup(cls.folder.cleanup)
        cls.root = Path(cls.folder.name)
        os.symlink(CASES / "data", cls.root / "data")
        cls.addClassCleanup(os.chdir, os.getcwd())
        os.chdir(cls.root)
        cls.program = Tundish(Path(rig.TUNDISH), rig.DEADLINE_S, cls.root / "cache")

    def check(self, name, dataset):
        """Its batches are those of the case, whose columns may have other names."""
        path = self.root / f"{name.replace('/', '-')}.yaml"
        record = json.loads((CASES / f"{name}.json").read_text())
        path.with_suffix(".json").write_text(json.dumps(record))
        components = nest.flatten(dataset.node.structure)
        expected = list(record.get("element_spec", [field.name.text for field in components]))
        self.assertEqual(len(components), len(expected), name)
        if record.get("num_workers", 1) * record.get("replicas", 1) == 1:  # else it is of a replica
            for field, recorded in zip(components, record.get("element_spec", {}).values()):
                self.agree(field.spec, recorded)
        for field, text in zip(components, expected):
            field.name.suggest(text)
        renames = {
            field.name.text: text for field, text in zip(components, expected) if field.name.text != text
        }
        tundish.data.save(path, case=renamed(dataset, renames) if renames else dataset)
        case = cases.load(path)
        own = self.root / "own" / name
        own.mkdir(parents=True)
        differences = verdict.judge(case, self.program.peek(case, own, None))
        self.assertEqual(differences, [], path.read_text())


    def agree(self, spec, recorded):
        """What the program is told of a component says nothing that TensorFlow does not."""
        kind = next((kind for kind in ("ragged", "sparse") if recorded.get(kind)), "dense")
        if spec.dtype is not None:
            self.assertEqual(spec.dtype, recorded["dtype"])
        if spec.shape is not None and recorded.get("shape") is not None and spec.kind == kind:
            self.assertEqual(len(spec.shape), len(recorded["shape"]))
            for own, theirs in zip(spec.shape, recorded["shape"]):
                self.assertTrue(None in (own, theirs) or own == theirs, f"{spec.shape}, TensorFlow {recorded['shape']}")


def renamed(dataset, names):
    """The same components under the names that the case has for them."""

    def rename(*element):
        (flat,) = element if len(element) == 1 else (element,)
        leaves = nest.flatten(flat)
        return {names.get(leaf.field.name.text, leaf.field.name.text): leaf for leaf in leaves}

    return dataset.map(rename)


class Strategy:
    """tf.distribute's calls, with what the case's file says that they do not."""

    def __init__(self, text):
        found = re.search(r"distribute: \{(.*)\}", text)
        said = dict(pair.replace('"', "").split(": ") for pair in found[1].split(", ")) if found else {}
        self.options = {
            "replicas": int(said.get("replicas", 1)),
            "rebatch": said.get("rebatch", "split"),
        }

    def experimental_distribute_dataset(self, dataset):
        return tundish.distribute(dataset, **self.options)

    def distribute_datasets_from_function(self, function):
        return tundish.distribute(function, replicas=self.options["replicas"])


def options(policy):
    made = tundish.data.Options()
    made.experimental_distribute.auto_shard_policy = tundish.data.AutoShardPolicy[policy]
    return made


def program(name, call):
    """The dataset of a recorded expression."""
    text = (CASES / f"{name}.yaml").read_text()
    seed = re.search(r"^seed: (.*)$", text, re.MULTILINE)
    tf.random.set_seed(seed and int(seed[1]))
    names = {policy.name: options(policy.name) for policy in tundish.data.AutoShardPolicy}
    names |= {"tf": tf, "np": numpy, "strategy": Strategy(text)}
    return eval(call, names)  # the expression is a file of this repository


# Expressions that are Python, and do not name columns, which tf.data has none of.
WHOLE = re.compile(r"(?:tf\.data|strategy)\.(?!experimental_distribute_values)")
NOT_PYTHON = re.compile(
    r"->|interleave over|Tensor\(|lambda.*(?:: not | and )|length\(|ctx: .*(?:num_input|index=0)"
    r"|padding_values=\{"
)


class Expressions(Recorded):
    def run_area(self, area, least):
        count = 0
        for name, call in recorded(area):
            if not WHOLE.match(call) or NOT_PYTHON.search(call):
                continue
            with self.subTest(name):
                self.check(name, program(name, call))
                count += 1
        self.assertGreaterEqual(count, least)

    def test_order(self):
        self.run_area("order", 90)

    def test_sources(self):
        self.run_area("source", 50)

    def test_distribution(self):
        self.run_area("distribute", 150)


if __name__ == "__main__":
    unittest.main()
