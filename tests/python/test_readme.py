"""The programs of sdk/python/README.md run, in the order in which they stand there, and that of the first README."""

import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import gpu
import rig

sys.path.insert(0, str(rig.REPOSITORY / "tests" / "data"))
import small_files  # noqa: E402

TEXT = (rig.REPOSITORY / "sdk" / "python" / "README.md").read_text()
PIPELINE = re.search(r"```yaml\n(.*?)```", TEXT, re.DOTALL)[1]
PROGRAMS = (
    "numpy", "torch", "jax", "keras", "tensorflow", "notebook", "gpu", "arrays on a gpu", "building",
    "resuming", "own python", "one line", "iterable", "tables", "explaining", "inference", "outliving",
)  # fmt: skip


class Readme(unittest.TestCase):
    def run_program(self, name, *modules, times=1, change=("", "", 0), **environment):
        """What the program prints, each time that it is run beside one server."""
        for module in modules:
            if importlib.util.find_spec(module) is None:
                self.skipTest(f"needs {module}: it is not installed")
        blocks = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
        self.assertEqual(len(blocks), len(PROGRAMS))
        with rig.serve(PIPELINE) as server:
            (server.path / "clicks.yaml").write_text(PIPELINE)
            block = blocks[PROGRAMS.index(name)].replace(*change)
            script = f"import os; os.chdir({str(server.path)!r})\n{block}"
            return [server.python(script, TUNDISH_STREAM="train", TUNDISH_BUILD=str(rig.BUILD), **environment)
                    .stdout.splitlines() for _ in range(times)]  # fmt: skip

    def test_numpy(self):
        self.assertEqual(self.run_program("numpy", "numpy"), [["0 [1. 2.] 1", "1 [5. 6.] 1"]])

    def test_torch(self):
        (losses,) = self.run_program("torch", "torch")
        self.assertEqual([float(loss) >= 0 for loss in losses], [True, True])

    def test_jax(self):
        self.assertEqual(self.run_program("jax", "jax"), [["8.5", "112.5"]])

    def test_keras(self):
        (lines,) = self.run_program("keras", "keras", "jax", KERAS_BACKEND="jax")
        self.assertIn("Epoch 2/2", lines)

    def test_tensorflow(self):
        (lines,) = self.run_program("tensorflow", "tensorflow")
        self.assertEqual([line.split(") ")[1] for line in lines],
                         ["[[b'to', b'be'], [b'or']]", "[[b'not', b'to', b'be'], []]"])  # fmt: skip

    def test_a_notebook(self):
        words = ["[[b'to', b'be'], [b'or']]", "[[b'not', b'to', b'be'], []]"]
        self.assertEqual(self.run_program("notebook", "numpy"), [words])

    def test_own_python(self):
        if importlib.util.find_spec("numpy") is None:
            self.skipTest("needs numpy: it is not installed")
        block = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)[PROGRAMS.index("own python")]
        with tempfile.TemporaryDirectory(prefix="tundish-readme-") as folder:
            Path(folder, "photos.py").write_text(block)
            Path(folder, "photos.yaml").write_text(re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)[1])
            environment = {**os.environ, "PYTHONPATH": str(rig.PACKAGE), "TUNDISH_CACHE": folder}
            printed = subprocess.run(
                [sys.executable, "photos.py"], cwd=folder, env=environment | {"TUNDISH_BUILD": str(rig.BUILD)},
                capture_output=True, check=True, text=True, timeout=rig.DEADLINE_S
            ).stdout.splitlines()  # fmt: skip
        self.assertEqual([line.rpartition(" ")[0] for line in printed], ["0 (32, 8, 8)", "1 (32, 8, 8)"])
        labels = sum(int(line.rpartition(" ")[2]) for line in printed)
        self.assertEqual(labels, sum(index % 10 for index in range(64)))

    def test_torchs_loader_in_one_line(self):
        (lines,) = self.run_program("one line", "torch")
        rows = []
        for line in lines:
            x, label = json.loads(f"[{line.replace('] [', '], [')}]")
            rows += zip(x, label, strict=True)
        self.assertEqual([len(lines), sorted(rows)], [3, [(n, n % 2) for n in range(10)]])

    def test_an_iterable_data_set(self):
        (lines,) = self.run_program("iterable", "torch", "cloudpickle")
        self.assertEqual(lines, ["[0, 2]", "[1, 3]", "[4, 6]", "[5, 7]", "[8]", "[9]"])

    def test_tables(self):
        if importlib.util.find_spec("pyarrow") is None:
            self.skipTest("needs pyarrow: it is not installed")
        stage = re.search(r"`(program: \{command.*?)`:\n", TEXT)[1].replace("python3", sys.executable)
        block = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)[PROGRAMS.index("tables")]
        with tempfile.TemporaryDirectory(prefix="tundish-readme-") as folder:
            Path(folder, "rows.py").write_text(block)
            Path(folder, "rows.yaml").write_text(rig.pipeline(stage, "ragged_batch: 3"))
            command = [rig.TUNDISH, "peek", "--json", f"{folder}/rows.yaml"]
            environment = {**os.environ, "PYTHONPATH": str(rig.PACKAGE), "TUNDISH_CACHE": folder}
            peek = subprocess.run(
                command, env=environment, capture_output=True, check=True, text=True, timeout=rig.DEADLINE_S
            )
        lines = [json.loads(line) for line in peek.stdout.splitlines()]
        (columns,) = [line["columns"] for line in lines if "columns" in line]
        self.assertEqual(columns["price"]["values"], [9.5, 0, 3.25])
        self.assertEqual(columns["words"]["values"], ["to", "be", "or"])
        self.assertEqual(columns["words"]["row_splits"], [[0, 2, 2, 3]])

    def test_building(self):
        (lines,) = self.run_program("building", "numpy")
        self.assertIn("      - string_split: {columns: text, output: words}  # <string>:10", lines)
        self.assertEqual(lines[-2:], ["[[3], [2, 4, 1], [4, 1]] [False  True  True]", "1"])

    def test_a_gpu_or_the_cpu(self):
        (losses,) = self.run_program("gpu", "torch")
        self.assertEqual([float(loss) >= 0 for loss in losses], [True, True])

    def test_arrays_on_a_gpu(self):
        environment = {}
        if not gpu.IS_REAL:
            if not os.path.exists(gpu.STAND_IN):
                self.skipTest("needs tests/cuda/libcuda.so.1 in the build folder")
            environment["LD_LIBRARY_PATH"] = os.path.dirname(gpu.STAND_IN)
        (lines,) = self.run_program("arrays on a gpu", **environment)
        self.assertEqual(lines, ["<tundish.DeviceArray float32(2, 2) on cuda:0> (2, 0)"] * 2)

    def test_resuming_goes_on_after_what_was_saved(self):
        stop = ("batch.step)", "batch.step); raise SystemExit")
        found = self.run_program("resuming", times=5, change=stop)
        self.assertEqual(found, [["0 0"], ["0 1"], ["1 0"], ["1 1"], []])

    def test_the_rows_of_a_batch_are_named(self):
        (lines,) = self.run_program("explaining", "numpy")
        note = "the row is written in the pipeline file, or in the arrays that it names"
        self.assertEqual(lines, [f"{row} None None None None {note}" for row in (0, 1)])

    def test_inference(self):
        self.assertEqual(self.run_program("inference", "numpy"), [["[[0. 1.]] [[b'to', b'be']]"]])

    def test_a_loop_outlives_its_server(self):
        self.assertEqual(self.run_program("outliving"), [["0 0", "0 1", "1 0", "1 1"]])


class First(unittest.TestCase):
    """What a stranger sees first, on pictures of their own."""

    def test_a_folder_of_pictures_is_read(self):
        if importlib.util.find_spec("torch") is None:
            self.skipTest("needs torch: it is not installed")
        text = (rig.REPOSITORY / "README.md").read_text()
        with tempfile.TemporaryDirectory(prefix="tundish-readme-") as folder:
            for number in range(70):
                name = Path(folder, "photos", ("cats", "dogs")[number % 2], f"{number}.png")
                name.parent.mkdir(parents=True, exist_ok=True)
                name.write_bytes(small_files.png(9, 12, number))
            Path(folder, "photos.yaml").write_text(re.search(r"```yaml\n(.*?)```", text, re.DOTALL)[1])
            program = re.search(r"```python\n(.*?)```", text, re.DOTALL)[1]
            environment = {**os.environ, "PYTHONPATH": str(rig.PACKAGE), "TUNDISH_CACHE": folder}
            done = subprocess.run(
                [sys.executable, "-c", program], cwd=folder, env=environment | {"TUNDISH_BUILD": str(rig.BUILD)},
                capture_output=True, text=True, timeout=rig.DEADLINE_S
            )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        printed = done.stdout.splitlines()
        self.assertEqual([line.partition(" tensor")[0] for line in printed],
                         ["torch.Size([64, 224, 224, 3])", "torch.Size([6, 224, 224, 3])"])  # fmt: skip


if __name__ == "__main__":
    unittest.main()
