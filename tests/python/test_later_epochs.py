"""A place in a later epoch of a source whose rows hang on the epoch."""

import os
import sys
import tempfile
import unittest
from unittest import mock

import rig

import tundish


class LaterEpochs(unittest.TestCase):
    """Sources whose rows hang on the epoch: a place in a later one goes on with its rows."""

    def setUp(self):
        rig.needs(self, "numpy")
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        names = {"TUNDISH_PYTHON": sys.executable, "TUNDISH_BUILD": str(rig.BUILD)}
        self.enterContext(mock.patch.dict(os.environ, names))

    def rows(self, place=None, steps=None):
        """Of three epochs, from a place on, and the place after so many steps."""
        found = []
        with tundish.serve(f"{self.folder}/pipeline.yaml") as server, server.open("train", place=place) as reader:
            while not reader.ended:
                for batch in reader:
                    found.append(batch["value"].tolist())
                    if len(found) == steps:
                        return found, reader.place
        return found, None

    def assert_goes_on(self, source):
        for behind in ((), ("repeat: 2",)):
            with open(f"{self.folder}/pipeline.yaml", "w") as file:
                file.write(rig.pipeline(source, *behind, "batch: 4", deliver="{epochs: 3}"))
            whole, _ = self.rows()
            count = len(whole) // 3
            self.assertNotEqual(whole[:count], whole[count : 2 * count])
            for steps in (1, count + 1, 2 * count, 2 * count + 1):
                had, place = self.rows(steps=steps)
                self.assertEqual(had + self.rows(place)[0], whole, (source, behind, steps))

    def write(self, name, text):
        with open(f"{self.folder}/{name}", "w") as file:
            file.write(text)

    def test_of_a_program(self):
        self.write(
            "rows.py",
            "import os, struct, sys\n"
            "first = 10 * int(os.environ['TUNDISH_EPOCH'])\n"
            "sys.stdout.buffer.write(struct.pack('<8q', *range(first, first + 8)))\n",
        )
        self.assert_goes_on(f"program: {{command: [{sys.executable}, rows.py], spec: {{value: {{dtype: int64}}}}}}")

    def test_of_processes_that_begin_anywhere(self):
        self.write(
            "rows.py",
            f"import sys\nsys.path.insert(0, {rig.PACKAGE!r})\nfrom tundish.rows import RowWriter\n"
            "with RowWriter({'value': 'int64'}) as rows, open('starts', 'a') as starts:\n"
            "    print(rows.first, file=starts)\n"
            "    for row in range(rows.first, 50, rows.step):\n"
            "        rows.write(value=100 * rows.epoch + row)\n",
        )
        command = f"command: [{sys.executable}, rows.py], spec: {{value: {{dtype: int64}}}}"
        self.assert_goes_on(f"program: {{{command}, processes: 3, seek: true}}")
        with open(f"{self.folder}/pipeline.yaml", "w") as file:
            file.write(rig.pipeline(f"program: {{{command}, seek: true}}", "batch: 4", deliver="{epochs: 1}"))
        _, place = self.rows(steps=10)
        os.unlink(f"{self.folder}/starts")
        self.assertEqual(self.rows(place)[0][0], [40, 41, 42, 43])
        with open(f"{self.folder}/starts") as starts:
            self.assertIn("39\n", starts.readlines())

    def test_of_a_data_set_that_draws(self):
        self.write(
            "drawing.py",
            "import random\nclass Drawn:\n"
            "    def __len__(self): return 8\n"
            "    def __getitem__(self, index): return index + random.random()\n",
        )
        self.assert_goes_on('python_dataset: {make: "drawing:Drawn", spec: {value: {dtype: float64}}, seed: 1}')

    def test_of_lists_of_numbers(self):
        import numpy

        for epoch in range(9):  # tf.data's repeat makes an iterator more than it has passes
            numpy.save(f"{self.folder}/order-{epoch}.npy", numpy.arange(8) + 10 * epoch)
        self.assert_goes_on('numbers: "order-{epoch}.npy"')


if __name__ == "__main__":
    unittest.main()
