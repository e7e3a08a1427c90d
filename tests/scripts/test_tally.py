"""What is counted of the lines that unittest prints."""

import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
from testing import limits, suites  # noqa: E402

PRINTED = """test_fails (test_it.It.test_fails) ... FAIL
test_errs (test_it.It.test_errs) ... ERROR
test_skips (test_it.It.test_skips) ... skipped 'needs a GPU'

======================================================================
ERROR: test_errs (test_it.It.test_errs)
----------------------------------------------------------------------
Traceback (most recent call last):
  File "test_it.py", line 7, in test_errs
    raise OSError("gone")
OSError: gone

======================================================================
FAIL: test_fails (test_it.It.test_fails)
Its description.
----------------------------------------------------------------------
Traceback (most recent call last):
  File "test_it.py", line 4, in test_fails
    self.assertEqual(1, 2)
AssertionError: 1 != 2

----------------------------------------------------------------------
Ran 3 tests in 0.001s

FAILED (failures=1, errors=1, skipped=1)""".splitlines()

HANGS = """import pathlib, subprocess, sys, time
def hang():
    pathlib.Path(sys.argv[1]).touch()
    time.sleep(1000)
print("test_hangs (test_it.It.test_hangs) ... ")
subprocess.Popen(["sleep", "1000"], start_new_session=True)
hang()"""


def when_there(path):
    """In place of threading.Timer: its time is over when the file is there, however slow the machine is."""
    def timer(_, function):
        def run():
            while not path.exists():
                time.sleep(0.01)
            function()

        thread = threading.Thread(target=run)
        thread.cancel = lambda: None
        return thread

    return timer


class Unittest(unittest.TestCase):
    def test_notes_say_where_a_test_failed_and_its_last_words(self):
        tally = suites._unittest_tally("asan test_it.py", PRINTED)
        self.assertEqual(str(tally), "0 passed, 2 failed, 1 skipped")
        self.assertEqual(tally.notes, [
            "asan test_it.py: ERROR: test_errs (test_it.It.test_errs): OSError: gone",
            "asan test_it.py: FAIL: test_fails (test_it.It.test_fails): AssertionError: 1 != 2",
            "asan test_it.py: 1 skipped: needs a GPU",
        ])

    def test_reports_are_whole(self):
        errs, fails = suites._unittest_tally("it", PRINTED).reports
        self.assertEqual((errs[0], errs[-1]), ("ERROR: test_errs (test_it.It.test_errs)", "OSError: gone"))
        self.assertEqual((fails[1], fails[-1]), ("Its description.", "AssertionError: 1 != 2"))
        failed = {"result": "FAIL", "stdout": "[ RUN ] it\n", "stderr": "it.c:7: wrong\n"}
        self.assertEqual(suites._meson_tally("it", failed).reports, [["it: fail", "[ RUN ] it", "it.c:7: wrong"]])

    def test_a_run_without_an_end_has_failed(self):
        self.assertEqual(suites._unittest_tally("it", PRINTED[:-1]).failed, 1)

    def test_a_test_that_hangs_is_ended_with_all_that_it_started(self):
        hangs = Path(self.enterContext(tempfile.TemporaryDirectory())) / "hangs"
        with mock.patch.object(limits.threading, "Timer", when_there(hangs)):
            lines = suites._printed([sys.executable, "-X", "faulthandler", "-u", "-c", HANGS, str(hangs)], limit=2)
        self.assertEqual(lines[0], "test_hangs (test_it.It.test_hangs) ... ")
        self.assertIn("in hang", "\n".join(lines))
        ended = lines.index("ended after 2 s. There ran:")
        self.assertEqual(len(lines[ended + 1:]), 2)
        self.assertIn("sleep 1000", lines[-1])
        self.assertFalse(Path(f"/proc/{lines[-1].split()[0]}/cwd").exists())
        tally = suites._unittest_tally("it", lines)
        self.assertEqual(tally.failed, 1)
        self.assertIn("did not come to its end: test_hangs", tally.notes[0])


class Run(unittest.TestCase):
    def test_each_file_that_meson_runs_runs_its_tests(self):
        """Without its last lines it ends well and has run none."""
        folder = Path(__file__).parents[1] / "system"
        files = sorted(folder.glob("test_*.py"))
        self.assertGreater(len(files), 20)
        self.assertEqual([file.name for file in files if '\nif __name__ == "__main__":\n' not in file.read_text()], [])


if __name__ == "__main__":
    unittest.main()
