"""Orders that files of numbers give: `rows`, a list of elements, and `sample_rows`, by weights."""

import os
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import rig

import tundish

try:
    import numpy
except ImportError:
    numpy = None


def weighted(count, **parameters):
    words = "".join(f", {name}: {value}" for name, value in parameters.items())
    return f"range: {{stop: {count}}}", f"sample_rows: {{weights: weights.npy, seed: 4{words}}}"


@unittest.skipUnless(numpy, "needs numpy")
class Rows(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        patched = mock.patch.dict(os.environ, {"TUNDISH_BUILD": str(rig.BUILD)})
        patched.start()
        self.addCleanup(patched.stop)

    def save(self, name, values, dtype=None):
        numpy.save(self.folder / name, numpy.array(values, dtype))

    def values(self, *stages, batch=5, epochs=1):
        deliver = f"{{epochs: {epochs}}}"
        (self.folder / "pipeline.yaml").write_text(rig.pipeline(*stages, f"batch: {batch}", deliver=deliver))
        batches = tundish.peek(self.folder / "pipeline.yaml", 100000, epochs=epochs)
        return [n for batch in batches for n in batch["value"].tolist()]

    def refused(self, *stages, error=tundish.PipelineError):
        with self.assertRaises(error) as caught:
            self.values(*stages)
        return str(caught.exception)

    def test_a_list_is_followed(self):
        for dtype in ("int64", "int32"):
            self.save("rows.npy", [7, 0, 7, 3, 9], dtype)
            self.assertEqual(self.values("range: {stop: 10}", "rows: rows.npy"), [7, 0, 7, 3, 9])
        behind = ("skip: 1", "take: 3", "repeat: 2")
        self.assertEqual(self.values("range: {stop: 10}", "rows: rows.npy", *behind), [0, 7, 3] * 2)
        self.assertEqual(self.values("range: {stop: 30}", "skip: 20", "rows: rows.npy"), [27, 20, 27, 23, 29])
        found = self.values("range: {stop: 10}", "rows: rows.npy", "permute: {seed: 1}")
        self.assertEqual(sorted(found), [0, 3, 7, 7, 9])

    def test_an_empty_list_is_an_empty_epoch(self):
        self.save("rows.npy", [], "int64")
        self.assertEqual(self.values("range: {stop: 10}", "rows: rows.npy"), [])

    def test_a_list_that_does_not_fit_is_refused(self):
        stages = "range: {stop: 10}", "rows: rows.npy"
        for values, words in {
            (0, -1): "index 1 of the file is -1",
            (0.5, 1.0): "indices are integers",
            ((0, 1),): "this file has int64 of 2 dimensions",
        }.items():
            self.save("rows.npy", values)
            self.assertIn(words, self.refused(*stages))
        self.save("rows.npy", [0, 10])
        self.assertIn("row 10 is asked for, and its input has 10 elements", self.refused(*stages, error=tundish.Error))
        self.assertIn("not repeat: put rows directly after", self.refused(stages[0], "repeat: 2", stages[1]))
        (self.folder / "rows.npy").write_bytes(b"\x93NUMPY\1\0\xff\xff{")
        self.assertIn("rows.npy: its .npy header", self.refused(*stages))
        self.save("rows.npy", range(1000))
        whole = (self.folder / "rows.npy").read_bytes()
        (self.folder / "rows.npy").write_bytes(whole[:-8])
        self.assertIn("it is shorter than its header says", self.refused(*stages))

    def test_weights_are_proportions(self):
        for dtype in ("float64", "float32", "int64"):
            self.save("weights.npy", [1, 0, 3, 6, 0], dtype)
            found = self.values(*weighted(5, num_samples=20000), batch=1000)
            counts = numpy.bincount(found, minlength=5)
            self.assertEqual((counts[1], counts[4], len(found)), (0, 0, 20000))
            for row, share in ((0, 0.1), (2, 0.3), (3, 0.6)):
                self.assertAlmostEqual(counts[row] / 20000, share, delta=0.02)

    def test_each_is_drawn_once_without_replacement(self):
        self.save("weights.npy", numpy.arange(1.0, 201.0))
        found = self.values(*weighted(200, replacement="false"))
        self.assertEqual(sorted(found), list(range(200)))
        # The heavy ones come first.
        self.assertGreater(sum(found[:100]), sum(found[100:]) + 2000)
        self.assertEqual(len(set(self.values(*weighted(200, replacement="false", num_samples=50)))), 50)

    def test_the_first_of_two_without_replacement_has_its_weight(self):
        self.save("weights.npy", [1.0, 2.0, 7.0])
        stages = weighted(3, replacement="false", num_samples=2)
        first = self.values(*stages, "repeat: 3000", batch=2)
        pairs = list(zip(first[::2], first[1::2]))
        self.assertAlmostEqual(sum(a == 2 for a, _ in pairs) / 3000, 0.7, delta=0.04)
        # Of the pairs that begin with the heaviest a third goes on with the lightest.
        self.assertAlmostEqual(sum(p == (2, 0) for p in pairs) / 3000, 0.7 / 3, delta=0.04)

    def test_each_epoch_draws_anew_and_a_seed_repeats_it(self):
        self.save("weights.npy", numpy.arange(50.0))
        for replacement in ("true", "false"):
            stages = weighted(50, replacement=replacement, num_samples=40)
            found = self.values(*stages, "repeat: 2")
            self.assertNotEqual(found[:40], found[40:])
            self.assertEqual(self.values(*stages, "repeat: 2"), found)
            self.assertEqual(self.values(*stages, "skip: 33"), found[33:40])

    def test_weights_that_do_not_fit_are_refused(self):
        for values, words in {
            (1.0, -2.0): "weight 1 of the file is -2",
            (1.0, float("nan")): "weight 1 of the file is",
            (0.0, 0.0): "no weight is more than 0",
            (1e308, 1e308): "the sum of the weights is too large",
        }.items():
            self.save("weights.npy", values)
            self.assertIn(words, self.refused(*weighted(2)))
        self.save("weights.npy", [1.0, 0.0, 2.0])
        said = self.refused(*weighted(3, replacement="false"))
        self.assertIn("3 rows are to be drawn, each once, and 2 have a weight", said)
        self.save("weights.npy", [1.0, 2.0])
        said = self.refused(*weighted(3), error=tundish.Error)
        self.assertIn("there are 2 weights, and its input has 3 elements", said)
        self.save("weights.npy", [1e-300, 1.0, 1e-300])
        self.assertEqual(sorted(self.values(*weighted(3, replacement="false"))), [0, 1, 2])

    def test_two_workers_share_what_one_would_have(self):
        self.save("weights.npy", numpy.arange(30.0))
        stages = (*weighted(30), "batch: 10")
        (self.folder / "pipeline.yaml").write_text(rig.pipeline(*stages))
        path = self.folder / "pipeline.yaml"
        one = [n for batch in tundish.peek(path, 100) for n in batch["value"].tolist()]
        two = [
            [n for batch in tundish.peek(path, 100, num_workers=2, worker=worker) for n in batch["value"].tolist()]
            for worker in range(2)
        ]
        self.assertEqual(len(two[0]), len(two[1]))
        self.assertEqual(sorted(two[0] + two[1]), sorted(one))

    def test_a_place_is_of_this_file(self):
        (self.folder / "pipeline.yaml").write_text(
            rig.pipeline(*weighted(300, num_samples=1000), "batch: 10")
        )
        self.save("weights.npy", numpy.arange(300.0))

        def files():
            return {"weights.npy": (self.folder / "weights.npy").read_bytes()}

        text = (self.folder / "pipeline.yaml").read_text()
        with rig.serve(text, files=files()) as server, server.open("train") as reader:
            whole = [batch["value"].tolist() for batch in reader]
        with rig.serve(text, files=files()) as server, server.open("train") as reader:
            for _ in range(90):
                reader.next()
            state = reader.state_dict()
        with rig.serve(text, files=files()) as server, server.open("train") as reader:
            reader.load_state_dict(state)
            self.assertEqual([batch["value"].tolist() for batch in reader], whole[90:])
        self.save("weights.npy", numpy.arange(300.0) + 1)
        with rig.serve(text, files=files()) as server, server.open("train") as reader:
            with self.assertRaises(tundish.PlaceError):
                reader.load_state_dict(state)
                reader.next()


if __name__ == "__main__":
    unittest.main()
