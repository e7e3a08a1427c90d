"""What is counted of the lines that unittest prints."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
from testing import suites  # noqa: E402

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


class Unittest(unittest.TestCase):
    def test_notes_say_where_a_test_failed_and_its_last_words(self):
        tally = suites._unittest_tally("asan test_it.py", PRINTED)
        self.assertEqual(str(tally), "0 passed, 2 failed, 1 skipped")
        self.assertEqual(tally.notes, [
            "asan test_it.py: ERROR: test_errs (test_it.It.test_errs): OSError: gone",
            "asan test_it.py: FAIL: test_fails (test_it.It.test_fails): AssertionError: 1 != 2",
            "asan test_it.py: 1 skipped: needs a GPU",
        ])

    def test_a_run_without_an_end_has_failed(self):
        self.assertEqual(suites._unittest_tally("it", PRINTED[:-1]).failed, 1)


if __name__ == "__main__":
    unittest.main()
