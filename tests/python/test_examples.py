"""The programs of sdk/examples/python run as their first lines say."""

import fcntl
import importlib.util
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import rig

EXAMPLES = rig.REPOSITORY / "sdk" / "examples" / "python"
LAUNCH = rig.REPOSITORY / "scripts" / "tundish-launch"
ROWS = 240
COLUMNS = "{x: %s, label: %s, id: %s}" % (
    "{values: %s, dtype: float32}" % [[i / ROWS, i % 3] for i in range(ROWS)],
    [i % 2 for i in range(ROWS)],
    list(range(ROWS)),
)
PIPE_BYTES = 4096  # the least that Linux has: less than a hundred lines of the examples


class Example(unittest.TestCase):
    def setUp(self):
        self.path = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="tundish-python-")))
        self.environment = dict(os.environ, PYTHONPATH=rig.PACKAGE, TUNDISH_BUILD=str(rig.BUILD))
        # Lines of several processes stay whole only if each is written at once.
        self.environment.pop("PYTHONUNBUFFERED", None)

    def needs(self, *modules):
        for module in modules:
            if importlib.util.find_spec(module) is None:
                self.skipTest(f"needs {module}: it is not installed")

    def command(self, *trainer, replicas=1, epochs=1):
        file = self.path / "pipeline.yaml"
        stages = (f"from_tensor_slices: {COLUMNS}", f"shuffle: {{buffer_size: {ROWS}}}", "batch: 8")
        file.write_text(rig.pipeline(*stages, replicas=replicas, deliver=f"{{epochs: {epochs}}}"))
        options = ["--replicas", str(replicas), "--admin", "none"]
        return [sys.executable, LAUNCH, file, *options, "--", *trainer]

    def run_example(self, *trainer, **options):
        """Its lines, sorted: those of several replicas come in any order."""
        done = subprocess.run(self.command(*trainer, **options), env=self.environment, cwd=self.path,
                              capture_output=True, text=True, timeout=rig.DEADLINE_S)  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return sorted(done.stdout.splitlines())

    def python(self, name, *arguments):
        return [sys.executable, str(EXAMPLES / name), *arguments]


class Numpy(Example):
    def test_five_lines_print_each_batch(self):
        self.needs("numpy")
        lines = self.run_example(*self.python("numpy_five_lines.py"))
        self.assertEqual(sorted(int(line.split()[0]) for line in lines), list(range(ROWS // 8)))
        self.assertEqual(sum(int(line.split()[-1]) for line in lines), ROWS // 2)


class Build(Example):
    def test_a_notebook_builds_and_trains_without_tensorflow(self):
        self.needs("numpy")
        hide = "import sys; sys.modules['tensorflow'] = None; import runpy; runpy.run_path(sys.argv[1])"
        command = [sys.executable, "-c", hide, str(EXAMPLES / "build_and_train.py")]
        environment = dict(self.environment, TMPDIR=str(self.path))
        done = subprocess.run(command, env=environment, cwd=self.path, capture_output=True, text=True,
                              timeout=rig.DEADLINE_S)  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        losses = [float(loss) for loss in re.findall(r"^epoch \d: loss (\S+)$", done.stdout, re.MULTILINE)]
        self.assertEqual(len(losses), 5)
        self.assertLess(losses[-1], losses[0])
        self.assertIn("- string_lookup: {columns: plan, vocabulary: [free, basic, team]}", done.stdout)
        self.assertEqual(len(list(self.path.glob("customers-*/customers.yaml"))), 1)


class Torch(Example):
    """Two replicas under gloo."""

    STEPS = ROWS // 8  # of one epoch
    EPOCHS = 4  # more steps than those before the kill and those whose lines fit into a pipe

    def setUp(self):
        super().setUp()
        self.needs("torch", "numpy")
        self.example = self.python("torch_ddp.py", str(self.path / "checkpoint.pt"))

    def steps_of(self, lines):
        """By step and rank, what was trained on; of a step done again, the last."""
        found = [re.fullmatch(r"step (\d+) rank (\d) rows (\[.*\]) loss (\S+)", line) for line in lines]
        return {(int(line[1]), int(line[2])): (line[3], line[4]) for line in found if line}

    def test_a_job_whose_trainer_was_killed_goes_on_with_the_rows_it_would_have_had(self):
        whole = self.steps_of(self.run_example(*self.example, replicas=2, epochs=self.EPOCHS))
        last = self.EPOCHS * self.STEPS
        steps = range(1, last + 1)
        self.assertEqual(sorted(whole), [(step, rank) for step in steps for rank in (0, 1)])
        rows = [int(row) for key in whole for row in re.findall(r"\d+", whole[key][0])]
        self.assertEqual(sorted(rows), sorted(self.EPOCHS * list(range(ROWS))))
        (self.path / "checkpoint.pt").unlink()

        before = self.killed_after(step=23)
        saved = max(step for step, rank in before if step % 5 == 0)
        self.assertGreaterEqual(saved, 20)
        self.assertNotIn((last, 0), before)
        after = self.steps_of(self.run_example(*self.example, replicas=2, epochs=self.EPOCHS))
        first = min(step for step, rank in after)
        self.assertIn(first, range(16, last))
        self.assertEqual(first % 5, 1)
        self.assertEqual({**before, **after}, whole)

    def killed_after(self, step):
        """Kill the trainer of rank 1 with SIGKILL once it says that this step is done."""
        read_end, write_end = os.pipe()
        fcntl.fcntl(write_end, fcntl.F_SETPIPE_SZ, PIPE_BYTES)  # so the job waits until it is read
        note = 'echo $$ > "$0.$RANK" && exec "$@"'
        trainer = ["sh", "-c", note, str(self.path / "process"), *self.example]
        job = subprocess.Popen(self.command(*trainer, replicas=2, epochs=self.EPOCHS),
                               env=self.environment, cwd=self.path, stdout=write_end, stderr=subprocess.DEVNULL)  # fmt: skip
        os.close(write_end)
        lines = []
        with open(read_end, "rb", buffering=0) as output:  # a buffer would let the job run further
            for line in output:
                lines.append(line.decode().strip())
                if line.startswith(b"step %d rank 1 " % step):
                    os.kill(int((self.path / "process.1").read_text()), signal.SIGKILL)
                    break
            lines += [line.decode().strip() for line in output]
        self.assertNotEqual(job.wait(timeout=rig.DEADLINE_S), 0)
        return self.steps_of(lines)

    def test_torchrun_stands_between(self):
        torchrun = (
            f"exec {sys.executable} -m torch.distributed.run --nnodes 2 --node-rank $RANK "
            '--nproc-per-node 1 --master-addr $MASTER_ADDR --master-port $MASTER_PORT "$@"'
        )
        trainer = ("sh", "-c", torchrun, "sh", *self.example[1:])
        found = self.steps_of(self.run_example(*trainer, replicas=2))
        self.assertEqual(len(found), 2 * self.STEPS)
        rows = [int(row) for key in found for row in re.findall(r"\d+", found[key][0])]
        self.assertEqual(sorted(rows), list(range(ROWS)))


class Gpu(Example):
    def setUp(self):
        super().setUp()
        self.needs("torch")

    def trained(self):
        lines = self.run_example(*self.python("train_gpu.py"), epochs=3)
        return [line.split()[0] for line in lines if " loss " in line], lines

    def test_the_cpu_trains_where_there_is_no_gpu(self):
        self.environment["CUDA_VISIBLE_DEVICES"] = ""
        devices, lines = self.trained()
        self.assertEqual(devices, ["cpu"] * 3)
        self.assertIn("training on the CPU: torch finds no GPU", lines)

    def test_the_gpu_trains(self):
        if os.environ.get("TUNDISH_TEST_GPU") != "1":
            self.skipTest("needs a GPU: scripts/test gpu runs it where there is one")
        devices, _ = self.trained()
        self.assertEqual(devices, ["cuda:0"] * 3)


class Jax(Example):
    def test_two_processes_see_the_same_global_batches(self):
        self.needs("jax", "numpy")
        self.environment["JAX_PLATFORMS"] = "cpu"  # two processes cannot share one GPU
        lines = self.run_example(*self.python("jax_two_processes.py"), replicas=2)
        told = [re.fullmatch(r"rank (\d) (step (\d+) ids (\d+) loss \S+)", line) for line in lines]
        told = [line for line in told if line]  # libraries write lines of their own
        self.assertEqual(sum(int(line[4]) for line in told), 2 * sum(range(ROWS)))
        by_rank = [sorted(line[2] for line in told if line[1] == rank) for rank in "01"]
        self.assertEqual(by_rank[0], by_rank[1])
        self.assertEqual(len(by_rank[0]), ROWS // 8)


class Keras(Example):
    def test_fit_learns(self):
        self.needs("keras", "jax")
        self.environment["KERAS_BACKEND"] = "jax"
        (line,) = self.run_example(*self.python("keras_fit.py"), epochs=3)
        losses = [float(loss) for loss in line.split()[1:]]
        self.assertEqual(len(losses), 3)
        self.assertLess(losses[-1], losses[0])


if __name__ == "__main__":
    unittest.main()
