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

sys.path.insert(0, str(rig.REPOSITORY / "tests" / "conformance"))

from runner import case as cases
from runner import verdict
from runner.tundish import Tundish

CASES = rig.REPOSITORY / "tests" / "conformance" / "cases"


def recorded(area):
    """The cases of an area that have an expression: name, expression, record."""
    for path in sorted((CASES / area).glob("*.json")):
        record = json.loads(path.read_text())
        if "call" in record:
            yield f"{area}/{path.stem}", record["call"], record


class Recorded(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="tundish-data-")
        cls.addClassCleanup(cls.folder.cleanup)
        cls.root = Path(cls.folder.name)
        os.symlink(CASES / "data", cls.root / "data")
        cls.program = Tundish(Path(rig.TUNDISH), rig.DEADLINE_S, cls.root / "cache")

    def check(self, name, dataset):
        """Its batches are those of the case, whose columns may have other names."""
        path = self.root / f"{name}.yaml"
        path.parent.mkdir(exist_ok=True)
        dataset.save(path, stream="case")
        record = json.loads((CASES / f"{name}.json").read_text())
        columns = [str(field.name) for field in fields(dataset)]
        expected = list(record.get("element_spec", columns))
        self.assertEqual(len(columns), len(expected), name)
        path.with_suffix(".json").write_text(json.dumps(record))
        renames = {old: new for old, new in zip(columns, expected) if old != new}
        if renames:
            path.write_text(path.read_text() + rename(renames))
        case = cases.load(path)
        own = self.root / "own" / name
        own.mkdir(parents=True)
        differences = verdict.judge(case, self.program.peek(case, own, None))
        self.assertEqual(differences, [], path.read_text())


def fields(dataset):
    from tundish.data import nest

    return nest.flatten(dataset.node.structure)


def rename(names):
    pairs = ", ".join(f"{json.dumps(old)}: {json.dumps(new)}" for old, new in names.items())
    return f"      - rename: {{{pairs}}}\n"


def program(name, call):
    """The dataset of a recorded expression."""
    import tundish.tf as tf

    seed = re.search(r"^seed: (.*)$", (CASES / f"{name}.yaml").read_text(), re.MULTILINE)
    tf.random.set_seed(seed and int(seed[1]))
    return eval(call, {"tf": tf})  # the expression is a file of this repository


# Whole expressions that are no Python, or no dataset's.
NOT_PYTHON = re.compile(r"->|Tensor\(|^Dataset|^TFRecord|lambda.*(?:: not | and )|group_by_window|bucket_by|np\.|tf\.constant|padding_values|from_tensor_slices\(value\)")


class Order(Recorded):
    def test_the_recorded_expressions(self):
        count = 0
        for name, call, record in recorded("order"):
            if NOT_PYTHON.search(call):
                continue
            with self.subTest(name):
                self.check(name, program(name, call))
                count += 1
        self.assertGreater(count, 60)


if __name__ == "__main__":
    unittest.main()
