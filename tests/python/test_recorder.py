"""tests/conformance/record with a real TensorFlow: a record says what it delivered."""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import rig

CONFORMANCE = rig.REPOSITORY / "tests" / "conformance"

COLUMNS = '''"""All kinds of columns."""

import tensorflow as tf

MAX_STEPS = 1
COLUMNS = ("value", "text", "lists", "few", "inner")


def dataset():
    half = tf.constant([0.1, 65504.0], tf.float16)
    text = tf.constant(["é", b"\\xff"])
    lists = tf.ragged.constant([[1], [2, 3]], dtype=tf.int64)
    few = tf.sparse.from_dense([[False, True], [False, False]])
    inner = tf.RaggedTensor.from_row_splits(tf.constant([[1.0, 2.0]], tf.float64), [0, 1, 1])
    return tf.data.Dataset.from_tensors((half, text, lists, few, inner)).repeat()
'''

ENDS = '''"""Two workers, of which each fails after a step."""

import tensorflow as tf

WORKERS = 2
EPOCHS = 2
MESSAGE_HAS = ["negative number"]


def dataset(worker):
    checked = lambda x: tf.debugging.assert_greater(x, tf.cast(-1, tf.int64), "a negative number")

    def positive(x):
        with tf.control_dependencies([checked(x)]):
            return tf.identity(x)

    return tf.data.Dataset.from_tensor_slices(tf.constant([worker, -1], tf.int64)).map(positive)


def artifacts():
    return {"words.txt": "a\\nb\\n", "x.limits": tf.constant([0.5, float("nan")])}
'''


@unittest.skipUnless(importlib.util.find_spec("tensorflow"), "tensorflow is not installed")
class Recorder(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="tundish-recorder-")
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        (self.folder / "data").mkdir()

    def put(self, name, program, pipeline=""):
        path = self.folder / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(program)
        path.with_suffix(".yaml").write_text(pipeline)

    def record(self, *names):
        command = [sys.executable, "-B", CONFORMANCE / "record", "--cases", self.folder, *names]
        environment = dict(os.environ, PYTHON=sys.executable)
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        return done.returncode, done.stderr

    def recorded(self, name):
        status, err = self.record(name)
        self.assertEqual(status, 0, err)
        return json.loads((self.folder / f"{name}.json").read_text())

    def test_cases_with_a_program_are_what_it_delivers(self):
        """One of each kind: a layer, an error, an order in two epochs."""
        names = ("content/rescaling_float", "content/base64_standard", "order/zip-of-itself-fixed")
        for name in names:
            self.put(name, (CONFORMANCE / "cases" / f"{name}.py").read_text())
        status, err = self.record(*names)
        self.assertEqual(status, 0, err)
        for name in names:
            expected = (CONFORMANCE / "cases" / f"{name}.json").read_text()
            self.assertEqual((self.folder / f"{name}.json").read_text(), expected)

    def test_each_kind_of_column_is_written(self):
        self.put("a/columns", COLUMNS)
        record = self.recorded("a/columns")
        ((worker),) = record["workers"]
        self.assertEqual((worker["end"], record["max_steps"]), ("max_steps", 1))
        self.assertEqual(worker["replicas"], [[{
            "value": {"dtype": "float16", "shape": [2], "values": [0.1, 65500.0]},
            "text": {"dtype": "string", "shape": [2], "values": ["é", {"base64": "/w=="}]},
            "lists": {"dtype": "int64", "ragged": True, "row_splits": [[0, 1, 3]], "values": [1, 2, 3]},
            "few": {"dtype": "bool", "sparse": True, "dense_shape": [2, 2], "indices": [[0, 1]], "values": [True]},
            "inner": {"dtype": "float64", "ragged": True, "row_splits": [[0, 1, 1]], "inner_shape": [2],
                      "values": [1.0, 2.0]},
        }]])
        self.assertEqual(record["element_spec"]["few"], {"dtype": "bool", "shape": [2, 2], "sparse": True})
        self.assertEqual(record["element_spec"]["lists"],
                         {"dtype": "int64", "shape": [2, None], "ragged": True, "ragged_rank": 1})

    def test_an_error_is_an_end(self):
        self.put("a/ends", ENDS)
        record = self.recorded("a/ends")
        self.assertEqual(record["artifacts"]["x.limits"]["values"], [0.5, "nan"])
        for number, worker in enumerate(record["workers"]):
            self.assertEqual(worker, {
                "replicas": [[{"value": {"dtype": "int64", "shape": [], "values": [number]}}]],
                "end": {"error": "InvalidArgument", "message_has": ["negative number"]},
            })

    def test_words_that_the_message_lacks_are_an_error(self):
        self.put("a/ends", ENDS.replace('["negative number"]', '["positive number"]'))
        status, err = self.record("a/ends")
        self.assertEqual(status, 1)
        self.assertIn("lacks ['positive number']", err)
        self.assertFalse((self.folder / "a/ends.json").exists())

    def test_a_record_is_a_case(self):
        self.put("order/of-three", '"""Three."""\n\nimport tensorflow as tf\n\n\ndef dataset():\n'
                 "    return tf.data.Dataset.range(3).batch(2)\n",
                 "streams: {case: {dataset: [range: 3, batch: 2]}}\n")
        self.recorded("order/of-three")
        command = [sys.executable, "-B", CONFORMANCE / "run", self.folder]
        done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ, TUNDISH_BUILD=str(rig.BUILD)))
        self.assertEqual((done.returncode, done.stdout), (0, "1 passed, 0 failed, 0 skipped\n"))


if __name__ == "__main__":
    unittest.main()
