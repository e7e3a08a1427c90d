"""The suite `gpu`: where there is no GPU it says why, and nothing has failed."""

import contextlib
import io
import sys
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

from testing import gpus, suites  # noqa: E402


class WithoutGpu(unittest.TestCase):
    def test_the_reason_is_a_note_and_no_failure(self):
        with mock.patch.object(gpus, "look", return_value=("", "the NVIDIA driver does not answer")):
            tally = suites.gpu()
        self.assertEqual((tally.passed, tally.failed, tally.skipped), (0, 0, 1))
        self.assertEqual(tally.notes, ["gpu skipped: the NVIDIA driver does not answer"])

    def test_a_driver_that_ends_the_program_or_hangs_is_no_gpu(self):
        for script, limit_s, why in (
            ("import os; os.abort()", 300, "the NVIDIA driver ended the program"),
            ("raise SystemExit('there is no NVIDIA driver: x')", 300, "there is no NVIDIA driver: x"),
            ("import time; time.sleep(1000)", 1, "the NVIDIA driver does not answer"),
        ):
            with mock.patch.multiple(gpus, _LOOK=script, _LOOK_S=limit_s):
                self.assertEqual(gpus.look(), ("", why))
        with mock.patch.object(gpus, "_LOOK", "print('a GPU')"):
            self.assertEqual(gpus.look(), ("a GPU", ""))


class Sanitizers(unittest.TestCase):
    def test_each_tool_that_is_installed_runs_the_test(self):
        ran = []

        def run(command, limit_s, **environment):
            ran.append(command)
            return 0, ["Ran 3 tests in 1 s", "OK"] if "unittest" in command else []

        with (
            mock.patch.object(gpus, "look", return_value=("a GPU", "")),
            mock.patch.object(gpus, "interpreter", return_value=(Path("/opt/python"), "")),
            mock.patch.object(gpus, "sanitizer", return_value=Path("/tools/compute-sanitizer")),
            mock.patch.multiple(suites, _ran=run, build=lambda flavour: None),
            contextlib.redirect_stdout(io.StringIO()),
        ):
            tally = suites.gpu()
        self.assertEqual((tally.passed, tally.failed), (1 + 3 + 3 * len(suites._GPU_FILES) + len(gpus.TOOLS), 0))
        of_tools = {command[2]: command for command in ran if command[0] == "/tools/compute-sanitizer"}
        self.assertEqual(set(of_tools), set(gpus.TOOLS))
        # A call that the driver refuses, as it may, is not to be counted as an error.
        memcheck = of_tools[next(iter(gpus.TOOLS))]
        self.assertEqual(memcheck[3:-1], ["--report-api-errors", "no", "--error-exitcode", "1"])


class Frameworks(unittest.TestCase):
    """Never the interpreter that the suite `python` installs: its PyTorch cannot use a GPU."""

    def test_an_interpreter_that_is_named_is_taken(self):
        with mock.patch.dict("os.environ", PYTHON="/opt/python"):
            self.assertEqual(gpus.interpreter(), (Path("/opt/python"), ""))

    def test_else_the_one_that_runs_this_if_it_has_a_framework(self):
        with mock.patch.dict("os.environ", PYTHON=""), mock.patch("importlib.util.find_spec") as find:
            find.side_effect = lambda name: name == "cupy" or None
            self.assertEqual(gpus.interpreter(), (Path(sys.executable), ""))
            find.side_effect = lambda name: None
            self.assertIn("has no torch, jax or cupy", gpus.interpreter()[1])


if __name__ == "__main__":
    unittest.main()
