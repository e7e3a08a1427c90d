"""`tundish top` in a terminal of its own."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
import unittest

from rig import DEADLINE_S, TUNDISH, Rig, stop

PLAIN = ["range: 1000000", "batch: 64"]


class Top(Rig):
    def top(self, term="xterm", rows=24, columns=80, **environment):
        """Start it; `self.seen` grows with what it writes."""
        self.seen = self.all = ""
        try:
            ours, theirs = pty.openpty()
        except OSError as error:
            self.skipTest(f"no terminal can be made here: {error}")
        self.addCleanup(os.close, ours)
        self.resize(ours, rows, columns)
        process = subprocess.Popen(
            [TUNDISH, "top"],
            env=dict(self.environment, TERM=term, **environment),
            stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        )
        os.close(theirs)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process, ours

    def resize(self, terminal, rows, columns):
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def wait_for_text(self, terminal, pattern):
        """Read on until that was written; what came before is forgotten."""
        deadline = time.monotonic() + DEADLINE_S
        while not (match := re.search(pattern, self.seen)):
            self.assertLess(time.monotonic(), deadline, f"no {pattern!r} in {self.seen[-2000:]!r}")
            if select.select([terminal], [], [], 1)[0]:
                piece = os.read(terminal, 65536).decode(errors="replace")
                self.seen += piece
                self.all += piece
        self.seen = self.seen[match.end():]

    def test_shows_figures_until_q(self):
        self.serve(self.pipeline(PLAIN))
        process, terminal = self.top()
        self.wait_for_text(terminal, "no trainer reads stream 'train'")
        self.wait_for_text(terminal, "stage")
        self.wait_for_text(terminal, "q: quit")
        os.write(terminal, b"q")
        self.assertEqual(process.wait(timeout=DEADLINE_S), 0)

    def test_a_drawing_has_the_rates_of_the_server(self):
        file = self.pipeline(["range: 1000000", "map: {x: value * 3}", "batch: 64"])

        def drawn(*options):
            done = subprocess.run([TUNDISH, "plan", "--dot", file, *options], env=self.environment,
                                  capture_output=True, text=True)  # fmt: skip
            return done.returncode, done.stdout, done.stderr

        self.serve(file)
        _, text, _ = drawn("--socket", self.environment["TUNDISH_SERVER"])
        self.assertRegex(text, r'"map \(line \d+\)\\n[^"]*\\ncontent: \d+ rows/s[^"]*"')
        self.assertRegex(text, r'"batch \(line \d+\)\\n[^"]*\\norder: \d+ rows/s[^"]*"')
        self.assertNotIn("rows/s", drawn()[1])
        status, text, said = drawn("--socket", str(self.path / "nothing"))
        self.assertEqual((status, text), (3, ""))
        self.assertIn("no server is at", said)

    def test_stays_when_the_server_goes_and_follows_the_next(self):
        file = self.pipeline(PLAIN)
        server = self.serve(file)
        process, terminal = self.top()
        self.wait_for_text(terminal, "no trainer reads")
        stop(server, signal.SIGKILL)
        self.wait_for_text(terminal, r"is gone|gone ")
        self.serve(file)
        self.wait_for_text(terminal, "no trainer reads")
        os.write(terminal, b"q")
        self.assertEqual(process.wait(timeout=DEADLINE_S), 0)

    def test_draws_anew_when_the_size_changes(self):
        self.serve(self.pipeline(PLAIN))
        process, terminal = self.top(rows=4, columns=60)
        self.wait_for_text(terminal, r"lines 1 to 3 of \d+")
        self.resize(terminal, 40, 120)
        process.send_signal(signal.SIGWINCH)
        self.wait_for_text(terminal, "range")
        os.write(terminal, b"q")
        self.assertEqual(process.wait(timeout=DEADLINE_S), 0)

    def test_scrolls_by_keys_and_to_sections(self):
        self.serve(self.pipeline(PLAIN))
        process, terminal = self.top(rows=4, columns=100)
        self.wait_for_text(terminal, "no trainer reads")
        self.wait_for_text(terminal, r"lines 1 to 3 of \d+")
        os.write(terminal, b"\x1bOB" * 20)  # down
        self.wait_for_text(terminal, "idle stage")
        os.write(terminal, b"1")  # the first section is the stream
        self.wait_for_text(terminal, "stream train: epoch 0")
        os.write(terminal, b"g")
        self.wait_for_text(terminal, "no trainer reads")
        os.write(terminal, b"q")
        self.assertEqual(process.wait(timeout=DEADLINE_S), 0)

    def test_folds_what_does_not_fit_until_it_is_unfolded(self):
        self.serve(self.pipeline(PLAIN))
        process, terminal = self.top(rows=8, columns=100)
        self.wait_for_text(terminal, "idle stage")
        self.wait_for_text(terminal, "f: all lines")
        os.write(terminal, b"fG")
        self.wait_for_text(terminal, "range:")
        self.wait_for_text(terminal, "f: fold")
        os.write(terminal, b"q")
        self.assertEqual(process.wait(timeout=DEADLINE_S), 0)

    def test_has_no_colours_where_there_are_none_or_none_are_wanted(self):
        self.serve(self.pipeline(PLAIN))
        for term, environment in (("vt100", {}), ("xterm", {"NO_COLOR": "1"})):
            process, terminal = self.top(term, **environment)
            self.wait_for_text(terminal, "q: quit")
            os.write(terminal, b"q")
            self.assertEqual(process.wait(timeout=DEADLINE_S), 0)
            self.assertIsNone(re.search(r"\x1b\[(\d+;)*3[1-7]m", self.all), term)

    def test_prints_where_there_is_no_terminal(self):
        server = self.serve(self.pipeline(PLAIN))
        process = self.start([TUNDISH, "top"])
        first = process.stdout.readline()
        self.assertTrue(first.startswith("idle"), first)
        stop(server)
        self.assertIn("has finished", "".join(self.lines(process)))


class Status(Rig):
    def status(self, *options):
        return subprocess.run([TUNDISH, "status", "--interval", "100", *options], env=self.environment,
                              capture_output=True, text=True)

    def test_tells_by_its_exit_status_how_the_server_is(self):
        (self.path / "rows.csv").write_text("1\n" * 100 + "three\n")
        csv = "csv: {filenames: rows.csv, record_defaults: [int64], column_names: [value]}"
        server = self.serve(self.pipeline([csv, "batch: 1"]))
        self.assertEqual(self.status().returncode, 0)
        self.lines(self.read())
        failed = self.status()
        self.assertEqual(failed.returncode, 4, failed.stdout)
        stop(server, signal.SIGKILL)
        self.assertEqual(self.status().returncode, 3)

    def test_prints_one_line_again_and_again_until_the_server_has_ended(self):
        server = self.serve(self.pipeline(PLAIN))
        once = self.status("--short")
        self.assertEqual((once.stdout.count("\n"), once.returncode), (1, 0))
        self.assertRegex(once.stdout, "^idle: no trainer reads")
        watch = self.start([TUNDISH, "status", "--short", "--watch", "--interval", "50"])
        for _ in range(3):
            self.assertRegex(watch.stdout.readline(), "^idle: no trainer reads")
        stop(server)
        self.assertIn("has finished", self.lines(watch)[-1])
        self.assertEqual(self.status("--short", "--json").returncode, 2)

    def test_tells_where_the_pipeline_file_is(self):
        file = self.pipeline(PLAIN)
        server = self.serve(os.path.relpath(file))
        self.assertEqual(self.paths(), (os.path.realpath(file), None, None))
        stop(server)
        (self.path / "learned").mkdir()
        self.serve(file, "--root", str(self.path), "--analysis", str(self.path / "learned"))
        named = (file, self.path, self.path / "learned")
        self.assertEqual(self.paths(), tuple(map(os.path.realpath, named)))

    def paths(self):
        out = subprocess.run([TUNDISH, "status", "--json", "--interval", "1"], env=self.environment,
                             capture_output=True, check=True)
        server = json.loads(out.stdout)["server"]
        return server["file"], server["root"], server["analysis"]

    def test_shows_the_notes_that_it_refers_to(self):
        (self.path / "rows.csv").write_text("1\n2\nthree\n4\n")
        csv = "csv: {filenames: rows.csv, record_defaults: [int64], column_names: [value]}"
        self.serve(self.pipeline([csv, "batch: 1"], deliver="{epochs: 1, on_error: skip}"))
        self.lines(self.read())
        shown = self.status().stdout
        self.assertRegex(shown, r"notes\n\d\d:\d\d:\d\d warning: skip: .*1 bad row left out")
        self.assertIn("not a valid int64: three", " ".join(shown.split()))

    def test_top_ends_with_the_program_that_reads_it(self):
        self.serve(self.pipeline(PLAIN))
        process = subprocess.Popen([TUNDISH, "top"], env=self.environment, stdout=subprocess.PIPE)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        process.stdout.readline()
        process.stdout.close()
        self.assertEqual(process.wait(DEADLINE_S), 0)

    def test_top_ends_in_a_pipe_with_head(self):
        self.serve(self.pipeline(PLAIN))
        script = '{ "$0" top; echo "top: $?" >&2; } | head -n 1'
        out = subprocess.run(["sh", "-c", script, TUNDISH], env=self.environment,
                             capture_output=True, text=True, timeout=DEADLINE_S)
        self.assertTrue(out.stdout.startswith("idle "), out.stdout)
        self.assertEqual(out.stderr, "top: 0\n")


if __name__ == "__main__":
    unittest.main()
