"""tundish.serve, peek and plan: what they give, what they say, and that nothing of them stays behind."""

import contextlib
import gc
import io
import os
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path
from unittest import mock

import rig

import tundish
import tundish.data
from tundish import Ragged, Sparse, Strings, private_folder, programs, progress

PIPELINE = rig.pipeline("range: {stop: 100}", "batch: 10")
ENDLESS = rig.pipeline("range: {stop: 100}", "batch: 10", deliver="{epochs: null}")


def setUpModule():
    os.environ["TUNDISH_BUILD"] = str(rig.BUILD.resolve())


def is_gone(pid):
    """It has ended, though its parent may not have noticed."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def segments_of(pid):
    return [name for name in os.listdir("/dev/shm") if name.startswith(f"tundish-{pid}-")]


def listed(column):
    return column.to_list() if isinstance(column, (Strings, Ragged, Sparse)) else column.tolist()


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tundish-serving-")
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name)

    def file(self, text, name="pipeline.yaml"):
        (self.path / name).write_text(text)
        return self.path / name

    def wait_until(self, is_so):
        deadline = time.monotonic() + rig.DEADLINE_S
        while not is_so():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)

    def assert_gone(self, pid):
        self.wait_until(lambda: is_gone(pid))
        self.assertEqual(segments_of(pid), [])

    def python(self, script):
        """A process of Python that serves PIPELINE as `server` and does more; its output is a pipe."""
        # Python hears of a signal that comes right before a sleep only after it: so sleeps are short.
        start = (f"import os, signal, sys, threading, time, tundish\n"
                 f"def wait():\n"
                 f"    while True: time.sleep(0.01)\n"
                 f"server = tundish.serve(text={ENDLESS!r})\nprint(server.pid, flush=True)\n")
        process = subprocess.Popen(
            [sys.executable, "-B", "-c", start + script], stdout=subprocess.PIPE, text=True,
            env=dict(os.environ, PYTHONPATH=rig.PACKAGE), start_new_session=True,
        )
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process, int(process.stdout.readline())


class Served(Case):
    def test_a_block_reads_and_ends(self):
        with tundish.serve(self.file(PIPELINE), threads=1, seed=3) as server:
            folder = os.path.dirname(server.socket)
            self.assertEqual(stat.S_IMODE(os.stat(folder).st_mode), 0o700)
            with server.open("train", replica=0) as reader:
                self.assertEqual([v for batch in reader for v in batch["value"]], list(range(100)))
            self.assertIn(str(server.pid), repr(server))
            with self.assertRaises(tundish.Timeout):
                server.wait(0)
        self.assertEqual(server.stop(), 0)
        self.assertEqual(server.wait(), 0)
        self.assertIn("stop: stopped", server.log)
        self.assertFalse(os.path.exists(folder))
        self.assert_gone(server.pid)
        with self.assertRaisesRegex(tundish.ServerGone, "start it again"):
            server.open()

    def test_several_at_once_have_sockets_of_their_own(self):
        other = rig.pipeline("range: {start: 7, stop: 9}", "batch: 2", replicas=2)
        with tundish.serve(text=PIPELINE) as one, tundish.serve(text=other, replicas=1) as two:
            self.assertNotEqual(one.socket, two.socket)
            with one.open() as reader, two.open() as another:
                self.assertEqual(reader.next()["value"].tolist(), list(range(10)))
                self.assertEqual(another.next()["value"].tolist(), [7, 8])

    def test_a_long_start_is_shown_on_a_terminal_and_cleared(self):
        slow = self.file(
            "#!/bin/sh\n"
            "echo '2026-01-01T00:00:00.000Z notice analyze: pass 1: 7 rows' >&2\n"
            f"while [ ! -e {self.path}/go ]; do sleep 0.05; done\n"
            f'exec {programs.find()} "$@"\n',
            "slow",
        )
        slow.chmod(0o755)
        ours, theirs = os.openpty()
        self.addCleanup(os.close, ours)
        seen = []

        def watch():
            while "pass 1" not in "".join(seen):
                seen.append(os.read(ours, 4096).decode())
            (self.path / "go").touch()

        thread = threading.Thread(target=watch)
        thread.start()
        with open(theirs, "w") as terminal:  # noqa: SIM117
            with mock.patch.object(programs, "find", return_value=str(slow)), mock.patch.object(sys, "stderr", terminal):
                tundish.serve(text=PIPELINE).stop()
            thread.join()
            rest = os.read(ours, 4096).decode()
        self.assertRegex("".join(seen), r"\rtundish: starting a server, \d+ s: analyze: pass 1: 7 rows")
        self.assertRegex(rest, r"\r +\r$")

    def test_a_long_wait_for_the_first_batch_is_shown_and_cleared(self):
        """Of a second reader, for which a program gives no row before it is told to, or long after that."""
        self.file(
            f"if mkdir {self.path}/started 2>/dev/null; then :; "
            f"else for i in $(seq 1200); do [ -e {self.path}/go ] || sleep 0.05; done; fi; head -c 320 /dev/zero",
            "slow",
        )
        text = (
            f"streams: {{train: {{dataset: [{{program: {{command: [sh, {self.path}/slow], spec: {{n: {{dtype: int64}}}}}}}},"
            " {batch: 4}], deliver: {epochs: 2}}}"
        )
        ours, theirs = os.openpty()
        self.addCleanup(os.close, ours)
        seen = []

        def watch():
            while "program" not in "".join(seen):
                seen.append(os.read(ours, 4096).decode())
            (self.path / "go").touch()

        thread = threading.Thread(target=watch)
        thread.start()
        with open(theirs, "w") as terminal, mock.patch.object(sys, "stderr", terminal):
            with tundish.serve(text=text) as server:
                with server.open() as reader:
                    reader.next()
                with server.open() as reader:
                    found = [batch["n"].tolist() for batch in reader]
        thread.join()
        self.assertEqual(len(found), 10)
        self.assertRegex("".join(seen), r"\rtundish: the first batch, \d+ s: a program writes its rows too slowly")
        self.assertRegex(os.read(ours, 4096).decode(), r"\r +\r$")

    def test_nothing_is_shown_where_nobody_looks(self):
        self.assertFalse(progress.is_seen(io.StringIO()))
        self.assertFalse(progress.is_seen(None))
        notebook = type("OutStream", (), {"__module__": "ipykernel.iostream"})
        self.assertTrue(progress.is_seen(notebook()))

    def test_a_socket_may_be_named(self):
        socket = str(self.path / "here")
        with tundish.serve(text=PIPELINE, socket=socket) as server:
            self.assertEqual(server.socket, socket)
            with tundish.open(server=socket) as reader:
                self.assertEqual(reader.next().step, 0)

    def test_paths_of_a_text_begin_at_the_current_folder(self):
        (self.path / "lines.txt").write_text("a\nb\n")
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.path)
        with tundish.serve(text=rig.pipeline("text_line: lines.txt", "batch: 2")) as server:
            with server.open() as reader:
                self.assertEqual(reader.next()["value"].to_list(), [b"a", b"b"])

    def test_a_long_temporary_folder_leaves_room_for_the_socket(self):
        deep = self.path / ("d" * 100)
        deep.mkdir()
        self.addCleanup(setattr, tempfile, "tempdir", tempfile.tempdir)
        tempfile.tempdir = str(deep)
        with tundish.serve(text=PIPELINE) as server, server.open() as reader:
            self.assertEqual(reader.next().step, 0)

    def test_ranks_of_torchrun_are_replicas_of_a_server_that_they_share(self):
        text = rig.pipeline("range: {stop: 12}", "batch: 4", replicas=2)
        got = {}
        with tundish.serve(text=text) as server, contextlib.ExitStack() as readers:
            for rank in ("0", "1"):
                with mock.patch.dict(os.environ, {"LOCAL_RANK": rank}):
                    got[rank] = readers.enter_context(tundish.open("train", server=server.socket))
            rows = {rank: [batch["value"].tolist() for batch in reader] for rank, reader in got.items()}
            with mock.patch.dict(os.environ, {"LOCAL_RANK": "2"}):
                with self.assertRaisesRegex(tundish.ArgumentError, "2 replicas .* no replica 2: .*--replicas"):
                    tundish.open("train", server=server.socket)
        self.assertEqual(rows, {"0": [[0, 1], [4, 5], [8, 9]], "1": [[2, 3], [6, 7], [10, 11]]})

    def test_ranks_with_a_session_or_a_group_each_have_its_first_replica(self):
        text = rig.pipeline("range: {stop: 2}", "batch: 2", distribute="groups: 2")
        with tundish.serve(text=text) as server, mock.patch.dict(os.environ, {"LOCAL_RANK": "1"}):
            with tundish.open("train", server=server.socket, group="second") as reader:
                self.assertEqual(reader.info.replica, 0)
            with tundish.open("train", server=server.socket, session="other") as reader:
                self.assertEqual(reader.info.replica, 0)

    def test_one_replica_of_several_is_not_read_alone(self):
        several = rig.pipeline("range: {stop: 1000}", "batch: 4", replicas=2)
        told = "stream '.*' deals its rows to 2 replicas, .*replicas: 1.*tundish-launch .* --replicas 2"
        for source in (self.file(several), tundish.distribute(tundish.data.Dataset.range(1000).batch(4), replicas=2)):
            with self.assertRaisesRegex(tundish.ArgumentError, told):
                tundish.open(source)
            with self.assertRaisesRegex(tundish.ArgumentError, told):
                tundish.open(source, replica=1)

    def test_a_replica_of_the_environment_is_of_another_server(self):
        for name in ("TUNDISH_REPLICA", "LOCAL_RANK"):
            with mock.patch.dict(os.environ, {name: "1"}), tundish.serve(text=PIPELINE) as server:
                with server.open() as reader:
                    self.assertEqual(reader.next().step, 0)

    def test_a_rank_of_an_mpi_job_has_a_server_of_its_own(self):
        for name in ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "SLURM_NTASKS"):
            os.environ[name] = "2"
            self.addCleanup(os.environ.pop, name)
        with tundish.serve(text=PIPELINE) as server, server.open() as reader:
            self.assertEqual(reader.next().step, 0)


class Faults(Case):
    def test_of_the_file_are_told(self):
        with self.assertRaisesRegex(tundish.PipelineError, "pipeline.yaml:5:9: .*did you mean range"):
            tundish.serve(self.file(rig.pipeline("rnage: 3")))
        with self.assertRaisesRegex(tundish.SystemFault, "^cannot open the pipeline file .*No such file"):
            tundish.serve(self.path / "none.yaml")
        with self.assertRaisesRegex(tundish.SystemFault, "none.txt: cannot be opened"):
            tundish.serve(self.file(rig.pipeline("text_line: none.txt")))

    def test_of_options_are_told(self):
        with self.assertRaisesRegex(tundish.ArgumentError, "unrecognized option '--sede'"):
            tundish.serve(text=PIPELINE, sede=1)
        with self.assertRaisesRegex(tundish.ArgumentError, "replicas"):
            tundish.serve(text=PIPELINE, replicas=0)
        with self.assertRaisesRegex(tundish.ArgumentError, "text="):
            tundish.serve()

    def test_leave_no_folder(self):
        self.addCleanup(setattr, tempfile, "tempdir", tempfile.tempdir)
        tempfile.tempdir = str(self.path)
        for text in (PIPELINE, rig.pipeline("rnage: 3")):
            try:
                tundish.serve(text=text).stop()
            except tundish.PipelineError:
                pass
        self.assertEqual(os.listdir(self.path), [])

    def test_of_the_installation_have_a_remedy(self):
        os.environ["TUNDISH_BUILD"] = str(self.path)
        self.addCleanup(os.environ.__setitem__, "TUNDISH_BUILD", str(rig.BUILD.resolve()))
        with self.assertRaisesRegex(tundish.SystemFault, r"pip install 'tundish\[server\]'"):
            tundish.serve(text=PIPELINE)
        program = self.path / "server" / "tundish"
        program.parent.mkdir()
        program.write_text("#!/bin/sh\necho tundish 9.9\n")
        program.chmod(0o755)
        with self.assertRaisesRegex(tundish.LayoutError, "is Tundish 9.9, and this package is"):
            tundish.serve(text=PIPELINE)

    def test_of_want_of_numpy_have_a_remedy(self):
        script = (f"import sys; sys.modules['numpy'] = None\nimport tundish\n"
                  f"print(tundish.plan(text={PIPELINE!r})['stream'])\n"
                  f"with tundish.serve(text={PIPELINE!r}) as server, server.open() as reader:\n"
                  f"    print(bytes(reader.next().array('value'))[8])\n"
                  f"open('alone.yaml', 'w').write({PIPELINE!r})\n"
                  f"with tundish.open('alone.yaml') as reader:\n"
                  f"    print(bytes(reader.next().array('value'))[8])\n"
                  f"for use in (lambda: tundish.peek(text={PIPELINE!r}), lambda: tundish.Transform):\n"
                  f"    try: use()\n"
                  f"    except ImportError as error: print(error)\n")
        done = subprocess.run([sys.executable, "-B", "-c", script], capture_output=True, text=True,
                              env=dict(os.environ, PYTHONPATH=rig.PACKAGE), cwd=self.path)
        self.assertEqual(done.stdout.splitlines()[:3], ["train", "1", "1"], done.stderr)
        self.assertEqual([line.endswith("pip install numpy") for line in done.stdout.splitlines()[3:]],
                         [True, True], done.stdout)

    def test_of_a_server_that_is_killed_are_told(self):
        with tundish.serve(text=PIPELINE) as server:
            os.kill(server.pid, signal.SIGKILL)
            self.assertEqual(server.wait(), -signal.SIGKILL)
            with self.assertRaises(tundish.ServerGone):
                server.open()
        self.assertEqual(server.stop(), -signal.SIGKILL)


class Ends(Case):
    """A server ends, whatever its owner does."""

    def test_after_an_exception(self):
        with self.assertRaises(ZeroDivisionError):
            with tundish.serve(text=PIPELINE) as server:
                1 / 0
        self.assert_gone(server.pid)

    def test_without_a_block(self):
        pid = tundish.serve(text=PIPELINE).pid
        gc.collect()
        self.assert_gone(pid)

    def test_not_before_a_reader_that_it_opened(self):
        reader = tundish.serve(text=ENDLESS).open("train")
        gc.collect()
        batches = iter(reader)
        pid = reader._kept.pid
        self.assertEqual([next(batches).step for _ in range(5)], list(range(5)))
        reader.close()
        gc.collect()
        self.assert_gone(pid)
        reader = tundish.serve(text=PIPELINE).open("train")
        pid = reader._kept.pid
        self.assertEqual(sum(1 for _ in reader), 10)
        del reader
        gc.collect()
        self.assert_gone(pid)

    def test_at_once_beside_readers_that_nobody_told_it_of(self):
        for opened in ("tundish.open('train', server=server.socket)", "server.open()"):
            process, pid = self.python(
                f"reader = {opened}\nbatch = reader.next()\n"
                "try:\n"
                "    print('reads', flush=True)\n"
                "    wait()\n"
                "except KeyboardInterrupt: pass\n"
                "print(server.stop(), reader.closed)"
            )
            self.assertEqual(process.stdout.readline(), "reads\n")
            process.send_signal(signal.SIGINT)
            # In good order: it did not have to be told twice.
            self.assertEqual(process.stdout.read().split(), ["0", "True"])
            self.assert_gone(pid)

    def test_by_an_interrupt_also_beside_a_reader_of_another_process(self):
        process, pid = self.python(
            "child = os.fork()\n"
            "if child == 0:\n"
            "    signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
            "    reader = server.open()\n"
            "    batch = reader.next()\n"
            "    print(os.getpid(), flush=True)\n"
            "    wait()\n"
            "with server:\n"
            "    print('waits', flush=True)\n"
            "    wait()"
        )
        (child,) = {process.stdout.readline().strip() for _ in range(2)} - {"waits"}
        self.addCleanup(os.kill, int(child), signal.SIGKILL)
        process.send_signal(signal.SIGINT)
        self.assertNotEqual(process.wait(rig.DEADLINE_S), 0)
        self.assert_gone(pid)

    def test_in_good_order_beside_a_reader_that_reads_no_more(self):
        server = tundish.serve(text=ENDLESS)
        reader = server.open()
        value = reader.next()["value"]
        self.assertEqual(server.stop(), 0)
        self.assertEqual(value.tolist(), list(range(10)))
        with self.assertRaises(tundish.MisuseError):
            reader.next()

    def test_when_the_interpreter_ends(self):
        for ending in ("", "sys.exit(3)", "1 / 0", "reader = server.open(); batch = reader.next()"):
            process, pid = self.python(ending and f"sys.stderr = open(os.devnull, 'w'); {ending}")
            process.wait(rig.DEADLINE_S)
            self.assert_gone(pid)

    def test_when_python_is_killed(self):
        process, pid = self.python("reader = server.open(); batch = reader.next()\n"
                                   "print('reads', flush=True); wait()")
        self.assertEqual(process.stdout.readline(), "reads\n")
        process.kill()
        self.assert_gone(pid)
        self.assertEqual(segments_of(process.pid), [])

    def test_the_folder_of_one_that_was_killed_goes_with_the_next_and_no_other_does(self):
        self.addCleanup(setattr, tempfile, "tempdir", tempfile.tempdir)
        tempfile.tempdir = str(self.path)
        self.enterContext(mock.patch.dict(os.environ, TMPDIR=str(self.path)))
        alive, other = self.python("wait()")
        killed, pid = self.python("wait()")
        self.assertEqual(len(os.listdir(self.path)), 2)
        killed.kill()
        self.assert_gone(pid)
        # The server's last thread may end after its first.
        self.wait_until(lambda: tundish.serve(text=PIPELINE).stop() or len(os.listdir(self.path)) == 1)
        with tundish.serve(text=PIPELINE) as server:
            self.assertIn(os.path.basename(os.path.dirname(server.socket)), os.listdir(self.path))
            with tundish.serve(text=PIPELINE):
                self.assertEqual(len(os.listdir(self.path)), 3)
            with server.open("train", replica=0) as reader:
                self.assertEqual(reader.next().step, 0)
        self.assertEqual(len(os.listdir(self.path)), 1)

    def test_the_folder_stays_while_its_server_still_ends(self):
        folder, lock = private_folder.make(str(self.path))
        child = subprocess.Popen(["sleep", "1000"], pass_fds=[lock])
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        os.close(lock)
        newer, lock = private_folder.make(str(self.path))
        self.assertTrue(os.path.exists(folder))
        child.kill()
        child.wait()
        os.close(lock)
        newest, lock = private_folder.make(str(self.path))
        os.close(lock)
        self.assertEqual(os.listdir(self.path), [os.path.basename(newest)])

    def test_when_python_is_killed_while_a_forked_child_lives(self):
        process, pid = self.python("child = os.fork()\n"
                                   "print(child or '', flush=True); wait()")
        child = int("".join(process.stdout.readline() for _ in range(2)))
        self.addCleanup(os.kill, child, signal.SIGKILL)
        process.kill()
        self.assert_gone(pid)
        self.assertFalse(is_gone(child))

    def test_not_with_the_thread_that_started_it(self):
        started = []
        thread = threading.Thread(target=lambda: started.append(tundish.serve(text=PIPELINE)))
        thread.start()
        thread.join()
        with started[0] as server, server.open() as reader:
            self.assertEqual([batch.step for batch in reader], list(range(10)))

    def test_not_with_a_forked_child(self):
        process, pid = self.python(
            "child = os.fork()\n"
            "if child == 0:\n"
            "    try: server.stop()\n"
            "    except tundish.MisuseError: sys.exit(7)\n"
            "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
            "print(server.open().next().step)")
        self.assertEqual(process.stdout.read().split(), ["7", "0"])
        self.assert_gone(pid)

    def test_after_an_interrupt_but_not_by_it(self):
        process, pid = self.python(
            "try:\n"
            "    with server:\n"
            "        try:\n"
            "            print('waits', flush=True)\n"
            "            wait()\n"
            "        finally: print(server.open().next().step, flush=True)\n"
            "except KeyboardInterrupt: print('ends')")
        self.assertEqual(process.stdout.readline(), "waits\n")
        os.killpg(process.pid, signal.SIGINT)
        self.assertEqual(process.stdout.read().split(), ["0", "ends"])
        self.assert_gone(pid)

    def test_when_the_wait_for_it_is_interrupted(self):
        # A server that is stopped never becomes ready.
        program = self.path / "server" / "tundish"
        program.parent.mkdir()
        real = os.path.join(os.environ["TUNDISH_BUILD"], "server", "tundish")
        program.write_text(f"#!/bin/sh\ntest $1 = serve || exec {real} $1\n"
                           f"echo $$ > {self.path}/pid\nexec sleep 1000\n")
        program.chmod(0o755)
        script = ("import tundish.serving as serving\nawait_ready = serving.Server._await_ready\n"
                  "def told(*options):\n    print('waits', flush=True)\n    await_ready(*options)\n"
                  f"serving.Server._await_ready = told\nserving.serve(text={PIPELINE!r})")
        process = subprocess.Popen(
            [sys.executable, "-B", "-c", script], start_new_session=True, stderr=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True,
            env=dict(os.environ, PYTHONPATH=rig.PACKAGE, TUNDISH_BUILD=str(self.path)))  # fmt: skip
        self.assertEqual(process.stdout.readline(), "waits\n")
        self.wait_until(lambda: (self.path / "pid").exists() and (self.path / "pid").read_text())
        process.send_signal(signal.SIGINT)
        self.assertIn("KeyboardInterrupt", process.communicate(timeout=rig.DEADLINE_S)[1])
        self.assert_gone(int((self.path / "pid").read_text()))


class Tells(Case):
    """Its owner's standard error shows what a reader would not guess."""

    def told(self, *stages, own="", loop="for batch in server.open(): pass", **options):
        (self.path / "own.py").write_text(own)
        text = rig.pipeline(*stages, **options)
        return self.told_by(f"with tundish.serve(text={text!r}, root={str(self.path)!r}) as server:\n    {loop}\n")

    def told_by(self, script):
        script = f"import tundish\n{script}"
        done = subprocess.run(
            [sys.executable, "-B", "-c", script], capture_output=True, text=True,
            env=dict(os.environ, PYTHONPATH=rig.PACKAGE), timeout=rig.DEADLINE_S)  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr.splitlines()

    def test_of_rows_that_are_left_out(self):
        (self.path / "bad.csv").write_text("a\n1\nbad\n3\n")
        lines = self.told(
            "csv: {filenames: bad.csv, column_names: [a], record_defaults: [int64], header: true}", "batch: 2",
            deliver="{epochs: 1, on_error: skip}",
        )
        self.assertEqual(len(lines), 1)
        self.assertRegex(lines[0], r"^tundish: warning: stream train: 1 bad row left out, .*'a'.*: bad \(csv")

    def test_what_functions_print(self):
        own = "import sys\ndef f(row):\n    print('row', row['value'])\n    return {'y': row['value']}\n"
        stage = "python: {call: 'own:f', workers: 1, output: {y: {dtype: int64}}}"
        lines = self.told("range: {stop: 4}", stage, "batch: 2", own=own)
        self.assertEqual(set(lines), {"row 0", "row 1", "row 2", "row 3"})

    def test_what_functions_print_without_a_server(self):
        own = ("def f(row):\n    print('row', row['value'])\n"
               "    if row['value'] == 3: raise ValueError('three')\n    return {'y': row['value']}\n")
        (self.path / "own.py").write_text(own)
        stage = "python: {call: 'own:f', workers: 1, output: {y: {dtype: int64}}}"
        text = rig.pipeline("range: {stop: 4}", stage, "batch: 1", deliver={"epochs": 1})
        named = f"text={text!r}, root={str(self.path)!r}"
        lines = self.told_by(f"assert len(tundish.peek(steps=3, {named})) == 3\n")
        self.assertLessEqual({"row 0", "row 1", "row 2"}, set(lines))
        lines = self.told_by(f"try: tundish.peek(steps=4, {named})\n"
                             f"except tundish.DataError as error: assert 'three' in str(error) and 'row 1' not in str(error)\n")
        self.assertLessEqual({f"row {i}" for i in range(4)}, set(lines))

    def test_what_programs_print_to_their_standard_error(self):
        (self.path / "rows.sh").write_text("echo begins >&2; printf 12345678; printf 'ends' >&2")
        lines = self.told("program: {command: [sh, rows.sh], spec: {value: {dtype: int64}}}", "batch: 1",
                          loop="for batch in server.open(): print(batch.step)")
        self.assertEqual(set(lines), {"begins", "ends"})

    def test_nothing_of_a_good_run(self):
        self.assertEqual(self.told("range: {stop: 100}", "batch: 10"), [])
        self.assertEqual(self.told("range: {stop: 100}", "batch: 10", loop="next(iter(server.open()))"), [])

    def test_no_file_that_has_the_descriptor_where_there_is_no_standard_error(self):
        file = self.path / "other"
        loop = "for batch in server.open(): pass"
        text = rig.pipeline("from_tensor_slices: {t: ['1', x]}", "string_to_number: {columns: t, output: n}", "batch: 1",
                            deliver="{epochs: 1, on_error: skip}")
        script = (f"import sys\nother = open({str(file)!r}, 'w')\nassert other.fileno() == 2\nimport tundish\n"
                  f"with tundish.serve(text={text!r}) as server:\n    {loop}\n"
                  f"print(server.log.count('left out'))\n")
        done = subprocess.run(
            ["sh", "-c", 'exec "$@" 2>&-', "sh", sys.executable, "-B", "-c", script], stdout=subprocess.PIPE,
            text=True, env=dict(os.environ, PYTHONPATH=rig.PACKAGE), timeout=rig.DEADLINE_S)  # fmt: skip
        self.assertEqual((done.returncode, done.stdout, file.read_text()), (0, "1\n", ""))


class Looks(Case):
    TEXT = rig.pipeline(
        "from_tensor_slices: {x: [1.5, 2.5, 3.5], t: ['a b', '', \"\\xFC\"], n: [[1, 2], [3, 4], [5, 6]]}",
        "map: {x: x, b: 'cast(x, float16)', t: t, n: n}",
        "string_split: {columns: t, output: w}", "ragged_batch: 2",
        "to_sparse: {columns: w, output: s}",
    )

    def test_peek_gives_what_a_server_serves(self):
        peeked = tundish.peek(text=self.TEXT)
        self.assertEqual(len(peeked), 2)
        with tundish.serve(text=self.TEXT) as server, server.open() as reader:
            for columns, batch in zip(peeked, reader):
                self.assertEqual(list(columns), list(batch))
                for name in batch:
                    self.assertIs(type(columns[name]), type(batch[name]), name)
                    self.assertEqual(listed(columns[name]), listed(batch[name]), name)
        columns["x"][0] = 7  # is the caller's own

    def test_peek_takes_steps_and_a_replica(self):
        text = rig.pipeline("range: {stop: 100}", "batch: 10", replicas=2)
        self.assertEqual([c["value"].tolist() for c in tundish.peek(text=text, steps=2, replica=1)],
                         [list(range(5, 10)), list(range(15, 20))])
        self.assertEqual(tundish.peek(self.file(text), 0), [])

    def test_peek_says_what_is_wrong(self):
        (self.path / "lines.txt").write_text("1\nx\n")
        bad = rig.pipeline("text_line: lines.txt", "string_to_number: {columns: value}", "batch: 1")
        with self.assertRaisesRegex(tundish.DataError, '"x" is not a valid float32'):
            tundish.peek(self.file(bad))
        with self.assertRaisesRegex(tundish.PipelineError, "pipeline.yaml:5:9: .*rnage"):
            tundish.peek(self.file(rig.pipeline("rnage: 3")))
        with self.assertRaisesRegex(tundish.ArgumentError, "--replica 3"):
            tundish.peek(text=PIPELINE, replica=3)

    def test_plan_is_what_the_command_prints(self):
        found = tundish.plan(text=self.TEXT, num_workers=2, worker=1)
        self.assertEqual((found["stream"], found["num_workers"], found["worker"]), ("train", 2, 1))
        self.assertEqual([c["name"] for c in found["element_spec"]], ["x", "t", "n", "b", "w", "s"])
        with self.assertRaisesRegex(tundish.SystemFault, "none.txt: cannot be opened"):
            tundish.plan(self.file(rig.pipeline("text_line: none.txt")))
        with self.assertRaisesRegex(tundish.PipelineError, "did you mean range"):
            tundish.plan(text=rig.pipeline("rnage: 3"))


if __name__ == "__main__":
    unittest.main()
