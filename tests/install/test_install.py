"""What pip installs, from the source and from wheels, in environments that have nothing else."""

import os
import re
import subprocess
import sys
import tempfile
import unittest
import venv
import zipfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
# Not the wheels' own: Meson keeps what it found, and they are to find a smaller libarchive.
BUILD = REPOSITORY / "build-source"
DEADLINE_S = int(os.environ.get("TUNDISH_TEST_DEADLINE_S", "1800"))

READ = """
import tundish

with tundish.serve(text="streams: {train: {dataset: [range: {stop: 100}, batch: 10]}}") as server:
    for batch in server.open("train"):
        print(batch["value"].sum())
"""
READ_SUMS = [sum(range(first, first + 10)) for first in range(0, 100, 10)]

# Where there is no GPU, what is installed must say so.
DEVICE = """
import tundish

with tundish.serve(text="streams: {train: {dataset: [range: {stop: 100}, batch: 10]}}") as server:
    try:
        print(server.open("train", device="cuda").device)
    except tundish.SystemFault as fault:
        print(fault)
"""

# Letters of two bytes, whose cases are among the few things that ICU is for.
TRANSFORM = """
streams:
  train:
    dataset:
      - text_line: {filenames: none.txt}
      - string_lower: {columns: value, encoding: utf-8}
      - batch: 2
"""
LOWER = """
import tundish

result = tundish.Transform("lower.yaml")({"value": ["\\u00c4".encode(), "\\u03a9".encode()]})
print(b" ".join(result["value"]).decode())
"""


class Installed(unittest.TestCase):
    """A virtual environment; PATH leads to its programs alone."""

    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        venv.create(self.folder, symlinks=True, with_pip=True)

    def run_(self, *command, **environment):
        """What a command of the environment prints; it must not fail."""
        bare = {"PATH": str(self.folder / "bin"), "HOME": str(self.folder), "TMPDIR": str(self.folder)}
        result = subprocess.run(
            [self.folder / "bin" / command[0], *command[1:]],
            cwd=self.folder,
            env=bare | environment,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
        )
        self.assertEqual(result.returncode, 0, f"{command}:\n{result.stdout}{result.stderr}")
        return result.stdout

    def assert_complete(self):
        """It reads batches, its programs run, and they know the place of their manual."""
        self.assertEqual([int(line) for line in self.run_("python", "-c", READ).split()], READ_SUMS)
        version = self.run_("python", "-c", "import tundish; print(tundish.__version__)")
        for program in ("tundish", "tundish-admin"):
            self.assertEqual(self.run_(program, "--version"), f"{program} {version}")
        self.assertIn("--replicas", self.run_("tundish-launch", "--help"))
        self.assertRegex(self.run_("python", "-c", DEVICE), "cuda:0|NVIDIA driver|there is no GPU|built without")
        self.assertTrue((self.folder / "share" / "man" / "man1" / "tundish.1").exists())


class FromSource(Installed):
    def test_pip_install_makes_everything(self):
        needs_network(self)
        settings = ["--config-settings", f"build-dir={BUILD}"]  # -C is not in the pip of Debian 12
        self.run_("python", "-m", "pip", "install", "--quiet", *settings, str(REPOSITORY), **os.environ)
        self.assert_complete()


class FromWheels(Installed):
    @classmethod
    def setUpClass(cls):
        needs_network(cls)
        command = [REPOSITORY / "scripts" / "package", "wheel"]
        subprocess.run(command, check=True, timeout=DEADLINE_S, stdout=sys.stderr)

    def setUp(self):
        super().setUp()
        wheels = ["--no-index", "--find-links", str(REPOSITORY / "dist")]
        self.run_("python", "-m", "pip", "install", "--quiet", *wheels, "tundish[server]")

    def test_they_need_neither_compiler_nor_tree(self):
        self.assert_complete()
        (self.folder / "lower.yaml").write_text(TRANSFORM)
        self.assertEqual(self.run_("python", "-c", LOWER, PYTHONUTF8="1"), "ä ω\n")
        lines = self.run_("python", "-m", "tundish.demo", "--seconds", "2").splitlines()
        self.assertRegex(lines[-1], r"^[\d,]+ rows; loss 0\.\d+ in the first second, 0\.\d+ in the last$")
        self.assertRegex(lines[-2], r"^epoch \d+ step \d+: loss 0\.\d+, [\d,]+ rows/s, waited [\d.]+%$")

    def test_a_launched_job_runs_in_the_environment(self):
        (self.folder / "job.yaml").write_text(
            "streams: {train: {dataset: [range: {stop: 8}, batch: 2], distribute: {replicas: 2}}}"
        )
        trainer = "import tundish; print(*(x for b in tundish.open() for x in b['value']), end=' ')"
        said = self.run_("tundish-launch", "job.yaml", "--replicas", "2", "--", "python", "-c", trainer)
        self.assertEqual(sorted(map(int, said.split())), list(range(8)))

    def test_they_hold_what_they_say(self):
        for name, tag, most in (
            ("tundish-", "cp3\\d+-abi3", 5 << 20),
            ("tundish_server-", "py3-none", 10 << 20),
        ):
            (wheel,) = (REPOSITORY / "dist").glob(f"{name}*.whl")
            self.assertRegex(wheel.name, rf"-{tag}-manylinux_2_\d+_\w+\.whl$")
            self.assertLess(wheel.stat().st_size, most)
            names = zipfile.ZipFile(wheel).namelist()
            bundled = [re.sub(r"-[0-9a-f]{8}\..*", "", Path(n).name) for n in names if ".libs/" in n]
            self.assertIn("libicuuc", bundled)
            self.assertFalse({"libmpi", "libxml2", "libc", "libm"} & set(bundled))
            self.assertEqual("libjemalloc" in bundled, name == "tundish_server-")
            licences = {Path(n).stem for n in names if "/licenses/" in n}
            self.assertLessEqual({"LICENSE", "libzstd1", "liblzma5"}, licences)


def needs_network(test):
    """Skips a test, or a class of tests, where pip gets nothing."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["--quiet", "--no-deps", "--retries", "0", "--timeout", "20", "--dest", folder]
        command = [sys.executable, "-m", "pip", "download", *options, "meson-python"]
        result = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S)
    if result.returncode != 0:
        reason = (result.stderr.strip().splitlines() or ["pip ended without a word"])[-1]
        raise unittest.SkipTest(f"pip could not fetch meson-python: {reason}")


if __name__ == "__main__":
    unittest.main()
