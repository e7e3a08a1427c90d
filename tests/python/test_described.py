"""Samples of data sets as columns, which `output` and `spec` of a pipeline file have."""

import collections
import dataclasses
import os
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import rig

try:
    import numpy as np
except ImportError:
    np = None

Pair = collections.namedtuple("Pair", "image label")


@dataclasses.dataclass
class Boxes:
    corners: object
    names: list


class Picture:
    """As Pillow's images give themselves to numpy."""

    def __init__(self, array):
        self.__array_interface__ = array.__array_interface__
        self._kept = array


@unittest.skipUnless(np, "needs numpy")
class Described(unittest.TestCase):
    def columns(self, *samples):
        from tundish.described import columns

        return {name: (found["dtype"], found["shape"]) for name, found in columns(samples).items()}

    def test_a_value_is_one_column(self):
        for value, column in (
            (3, ("int64", [])),
            (2.5, ("float64", [])),
            (True, ("bool", [])),
            ("text", ("string", [])),
            (b"\0\xff", ("string", [])),
            (np.float16(1), ("float16", [])),
            (np.zeros((2, 0), np.uint16), ("uint16", [2, 0])),
            ([1, 2, 3], ("int64", [3])),
            (["a", "bc"], ("string", [2])),
            (np.array(["a", "bc"]), ("string", [2])),
            (Picture(np.zeros((4, 5, 3), np.uint8)), ("uint8", [4, 5, 3])),
        ):
            self.assertEqual(self.columns(value), {"value": column}, value)

    def test_nests_have_path_names(self):
        sample = {"image": np.zeros(3, np.float32), "target": Boxes(np.zeros((0, 4)), ["cat"]), 7: (1, {"x": "y"})}
        self.assertEqual(
            self.columns(sample),
            {
                "image": ("float32", [3]),
                "target.corners": ("float64", [0, 4]),
                "target.names": ("string", [1]),
                "7.0": ("int64", []),
                "7.1.x": ("string", []),
            },
        )
        self.assertEqual(list(self.columns((1, 2.0))), ["0", "1"])
        self.assertEqual(list(self.columns(Pair(1, 2.0))), ["image", "label"])

    def test_dimensions_in_which_samples_differ_are_open(self):
        samples = [(np.zeros((3, n, 4), np.int8), n) for n in (2, 5, 2)]
        self.assertEqual(self.columns(*samples), {"0": ("int8", [3, None, 4]), "1": ("int64", [])})

    def test_what_no_column_holds_is_named(self):
        for samples, words in (
            ([], "there is no sample"),
            ([()], "a sample has no values"),
            ([{"a": {"b": None}}], "column 'a.b' is None"),
            ([(1, object())], "column '1' is object, which no column can hold"),
            ([np.zeros(2, complex)], "column 'value' is ndarray of complex128"),
            ([[[1], [1, 2]]], "column 'value' is list, which is no array"),
            ([1, 2.5], "column 'value' has another dtype in sample 1 \\(float64\\) than before \\(int64\\)"),
            ([np.zeros(2), np.zeros((2, 2))], "another number of dimensions in sample 1 \\(2\\) than before \\(1\\)"),
            ([{"a": 1}, {"a": 1, "b": 2}], "samples differ in their columns: b is not in both 0 and 1"),
            ([{1: 2, "1": 3}], "two values of a sample are column '1'"),
        ):
            with self.assertRaisesRegex(ValueError, words):
                self.columns(*samples)

    def test_tensors(self):
        torch = rig.needs(self, "torch")
        rig.needs(self, "ml_dtypes")
        tensors = {"x": torch.zeros(2, 3, requires_grad=True), "y": torch.tensor(1), "z": torch.zeros(2, dtype=torch.bfloat16)}
        self.assertEqual(
            self.columns(tensors), {"x": ("float32", [2, 3]), "y": ("int64", []), "z": ("bfloat16", [2])}
        )

    def test_items_that_are_nests_come_as_their_columns(self):
        import tundish
        from tundish.described import columns

        source = "import collections\nPair = collections.namedtuple('Pair', 'image label')\n"
        source += "ITEMS = [{'a': Pair([n, n], 'x' * n), 'b': n} for n in range(4)]\nPAIRS = [i['a'] for i in ITEMS]\n"
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "items.py").write_text(source)
            names = {"TUNDISH_PYTHON": sys.executable, "PYTHONPATH": rig.PACKAGE, "TUNDISH_BUILD": str(rig.BUILD)}
            items = [{"a": Pair([n, n], "x" * n), "b": n} for n in range(4)]
            for name, samples in (("ITEMS", items), ("PAIRS", [item["a"] for item in items])):
                spec = str(columns(samples)).replace("None", "null")
                path = Path(folder, "pipeline.yaml")
                path.write_text(rig.pipeline(f'python_dataset: {{make: "items:{name}", spec: {spec}}}', "batch: 4"))
                with mock.patch.dict(os.environ, names):
                    (batch,) = tundish.peek(path)
                image, label = ("a.image", "a.label") if name == "ITEMS" else ("image", "label")
                self.assertEqual(batch[image].tolist(), [[n, n] for n in range(4)])
                self.assertEqual([bytes(text) for text in batch[label]], [b"x" * n for n in range(4)])


if __name__ == "__main__":
    unittest.main()
