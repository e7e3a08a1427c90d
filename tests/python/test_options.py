"""An option that is misspelt is refused when the object is made, with the nearest word."""

import importlib.util
import inspect
import os
import unittest

import rig

import tundish

TEXT = rig.pipeline("range: {stop: 4}")


class Misspelt(unittest.TestCase):
    def assert_refused(self, made, words):
        with self.assertRaisesRegex(tundish.ArgumentError, words):
            made()

    def test_readers_and_servers(self):
        opened = lambda: tundish.open("train", timout=3)
        self.assert_refused(opened, r"tundish.open\(\) has no option 'timout': did you mean 'timeout'\?")
        with self.assertRaises(TypeError):  # as of any function
            opened()
        self.assert_refused(lambda: tundish.open("train", x=3), "no option 'x': it has 'stream', 'server', ")
        self.assert_refused(lambda: tundish.serve(text=TEXT, threds=2), "did you mean --threads")
        self.assert_refused(lambda: tundish.plan(text=TEXT, replcas=2), "did you mean --replicas")
        with tundish.serve(text=TEXT) as server:
            self.assert_refused(lambda: server.open(formt="torch"), "did you mean 'format'")
        self.assertIn("timeout", inspect.signature(tundish.open).parameters)
        self.assertTrue(tundish.open.__doc__.startswith("Attach"))

    def test_programs_and_transforms(self):
        rig.needs(self, "numpy")
        import tundish.data

        rows = tundish.data.Dataset.range(4)
        self.assert_refused(lambda: tundish.distribute(rows, replcas=2), "no option 'replcas': did you mean 'replicas'")
        self.assert_refused(lambda: tundish.Transform("a.yaml", untl="x"), r"Transform\(\) has .*did you mean 'until'")

    def test_loaders_of_torch(self):
        rig.needs(self, "torch")
        from tundish.torch import DataLoader

        self.assert_refused(lambda: DataLoader("train", colums=["x"]), "no option 'colums': did you mean 'columns'")
        self.assert_refused(lambda: DataLoader("train", timout=3), "no option 'timout': did you mean 'timeout'")
        self.assert_refused(lambda: DataLoader([1, 2], batchsize=1), "of a data set has .*did you mean 'batch_size'")
        self.assert_refused(lambda: DataLoader([1, 2], colate_fn=1), "did you mean 'collate_fn'")

    def test_adapters(self):
        reader = object()  # which is not looked at
        if importlib.util.find_spec("jax") is not None:
            import tundish.jax

            self.assert_refused(lambda: tundish.jax.global_arrays({}, sharing=1), "did you mean 'sharding'")
        if importlib.util.find_spec("tensorflow") is not None:
            os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
            import tundish.tensorflow

            self.assert_refused(lambda: tundish.tensorflow.dataset(reader, colums=["x"]), "did you mean 'columns'")
        if None not in map(importlib.util.find_spec, ("keras", "tensorflow")):
            import tundish.keras

            make = lambda: tundish.keras.Adapter(reader, x="x", sample_weigth="w")
            self.assert_refused(make, "did you mean 'sample_weight'")


if __name__ == "__main__":
    unittest.main()
