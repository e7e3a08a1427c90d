"""What must end in an exception that says what to do: never in a hang, never in a crash."""

import os
import pickle
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import warnings
from pathlib import Path
from unittest import mock

import rig

import tundish

ROWS = ("range: {stop: 100}", "batch: 10")
# Its second group never comes, so nothing is dealt.
WAITS = {"distribute": "groups: 2"}


class Threads(unittest.TestCase):
    def test_two_at_once_is_an_error_and_the_first_goes_on(self):
        with rig.serve(rig.pipeline(*ROWS, **WAITS)) as server, server.open("train") as reader:
            steps = []
            thread = threading.Thread(target=lambda: steps.append(reader.next().step))
            thread.start()
            calls = {
                "next": reader.next,
                "poll": reader.poll,
                "restart": reader.restart,
                "fileno": reader.fileno,
                "place": lambda: reader.place,
                "info": lambda: reader.info,
                "close": reader.close,
            }
            deadline = time.monotonic() + rig.DEADLINE_S
            while True:  # until the thread is inside
                try:
                    reader.fileno()
                except tundish.MisuseError:
                    break
                self.assertLess(time.monotonic(), deadline)
            for name, call in calls.items():
                with self.subTest(call=name):
                    with self.assertRaisesRegex(tundish.MisuseError, "another thread"):
                        call()
            with server.open("train", group="other"):
                thread.join()
            self.assertEqual(steps, [0])

    def test_an_older_loop_is_over_when_another_begins(self):
        with rig.serve(rig.pipeline(*ROWS, deliver="{epochs: 3}")) as server:
            with server.open("train") as reader:
                outer = iter(reader)
                self.assertEqual(next(outer).epoch, 0)
                inner = iter(reader)
                self.assertEqual(next(inner).epoch, 1)
                with self.assertRaisesRegex(tundish.MisuseError, "another loop"):
                    next(outer)
                self.assertEqual(next(inner).step, 1)


class Processes(unittest.TestCase):
    def in_child(self, act):
        """What `act` returns in a forked child, as text."""
        read_end, write_end = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                answer = str(act())
            except BaseException as error:
                answer = f"{type(error).__name__}: {error}"
            os.write(write_end, answer.encode())
            os._exit(0)
        os.close(write_end)
        with open(read_end, encoding="utf-8") as file:
            answer = file.read()
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        return answer

    def test_a_forked_child_is_told_to_open_its_own(self):
        with rig.serve(rig.pipeline(*ROWS)) as server, server.open("train") as reader:
            batch = reader.next()
            view = batch["value"]
            told = f"MisuseError: the reader was opened in process {os.getpid()}: open one in this"
            for act in (reader.next, reader.poll, reader.restart, lambda: reader.place,
                        lambda: next(iter(reader)), reader.fileno, lambda: reader.info):
                self.assertIn(told, self.in_child(act))
            answer = self.in_child(lambda: batch.array("value"))
            self.assertIn("MisuseError: the batch belongs to", answer)
            # What was there at the fork can be read, dropped and closed.
            self.assertEqual(self.in_child(lambda: view.sum()), "45")
            self.assertEqual(self.in_child(lambda: [batch.release(), reader.close()]), "[None, None]")
            self.assertEqual(reader.next().step, 1)
            self.assertEqual(view.tolist(), list(range(10)))

    def test_a_forked_child_opens_a_reader_of_its_parents_server(self):
        with tundish.serve(text=rig.pipeline(*ROWS)) as server:
            self.assertEqual(self.in_child(lambda: server.open("train", session="own").next().step), "0")

    def test_a_spawned_process_reopens_a_pickled_reader(self):
        with rig.serve(rig.pipeline(*ROWS, replicas=2, deliver="{epochs: 1}")) as server:
            with server.open("train", replica=0) as reader:
                pickled = pickle.dumps(reader)
            script = (
                "import pickle, sys\nreader = pickle.loads(bytes.fromhex(sys.argv[1]))\n"
                "print(reader.info.replica, list(reader.spec))"
            )
            result = server.python(script, pickled.hex(), TUNDISH_REPLICA="1")
            self.assertEqual(result.stdout, "0 ['value']\n")


class Closed(unittest.TestCase):
    def test_every_call_says_so(self):
        with rig.serve(rig.pipeline(*ROWS)) as server:
            reader = server.open("train")
            loop = iter(reader)
            reader.close()
            reader.close()
            self.assertTrue(reader.closed)
            for act in (reader.next, reader.poll, reader.restart, reader.fileno, lambda: reader.place,
                        lambda: reader.info, lambda: next(loop), reader.state_dict, lambda: len(reader)):
                with self.assertRaisesRegex(tundish.MisuseError, "closed: open another"):
                    act()

    def test_an_exception_in_a_loop_leaves_a_reader_that_works(self):
        with rig.serve(rig.pipeline(*ROWS, deliver="{epochs: 2}")) as server:
            with server.open("train") as reader, warnings.catch_warnings():
                warnings.simplefilter("ignore")  # `batch` is still there when it is needed
                with self.assertRaises(ZeroDivisionError):
                    for batch in reader:
                        batch.step / (batch.step - 2)
                self.assertEqual([(b.epoch, b.step) for b in reader], [(1, i) for i in range(10)])


class Servers(unittest.TestCase):
    def test_a_killed_server_is_told_once_and_the_loop_goes_on_exactly(self):
        with rig.serve(rig.pipeline("range: {stop: 3000}", "shuffle: 100", "batch: 10")) as server:
            with server.open("train") as reader:
                whole = [batch["value"].tolist() for batch in reader]
            server.kill()
            server.start()
            with server.open("train") as reader:
                found, losses = [], 0
                while not reader.ended:
                    try:
                        for batch in reader:
                            found.append(batch["value"].tolist())
                            if len(found) in (40, 170):
                                server.kill()
                    except tundish.ServerGone as gone:
                        losses += 1
                        self.assertEqual(gone.status, "E_SERVER_GONE")
                        server.start()
            self.assertEqual(losses, 2)
            self.assertEqual(found, whole)

    def test_no_server_says_how_to_start_one(self):
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaisesRegex(tundish.ServerGone, "tundish serve"):
                tundish.open("train", server=f"{folder}/none", timeout=0.2)

    def test_a_wait_for_a_server_is_told_and_so_is_its_end(self):
        with tempfile.TemporaryDirectory() as folder:
            script = (
                "import sys, tundish\n"
                "try: tundish.open('train', server=sys.argv[1], timeout=1.5)\n"
                "except tundish.ServerGone as gone: print(gone)\n"
            )
            done = subprocess.run(
                [sys.executable, "-c", script, f"{folder}/none"],
                env=dict(os.environ, PYTHONPATH=rig.PACKAGE),
                capture_output=True,
                text=True,
                timeout=rig.DEADLINE_S,
            )
        line = r"^tundish: no server listens at .*/none; start one: .*; waiting for it until \d\d:\d\d:\d\d\n$"
        self.assertRegex(done.stderr, line)
        self.assertRegex(done.stdout, r"none was there in all of the timeout, 1.5 s\)\n$")
        self.assertNotIn("died", done.stdout)

    def test_a_replica_in_use_by_this_program_is_said_to_be(self):
        with rig.serve(rig.pipeline(*ROWS)) as server, server.open("train") as reader:
            with self.assertRaisesRegex(tundish.ArgumentError, "an earlier reader of this program"):
                server.open("train")
            self.assertEqual(reader.next().step, 0)
            other = server.python(
                "import tundish\n"
                "try: tundish.open('train')\n"
                "except tundish.ArgumentError as error: print(error)\n"
            )
            self.assertIn(f"in use by process {os.getpid()}: close its reader there", other.stdout)

    def test_a_reader_that_only_its_batches_or_its_error_still_hold_makes_way(self):
        with rig.serve(rig.pipeline("range: {stop: 30}", "batch: 10", deliver="{epochs: 9}")) as server:
            first = next(iter(server.open("train")))
            for batch in server.open("train"):
                break
            batches = list(server.open("train"))
            for batch in (first, batch, batches[0]):
                self.assertEqual(batch["value"].tolist(), list(range(10)))
        rows = ("csv: {filenames: rows.csv, record_defaults: [int64], column_names: [n]}", "batch: 1")
        with rig.serve(rig.pipeline(*rows), files={"rows.csv": b"1\nx\n"}) as server:
            for _ in range(2):
                reader = server.open("train")
                self.assertEqual(reader.next()["n"].tolist(), [1])
                self.assertRaises(tundish.DataError, reader.next)

    def test_a_server_that_does_not_return_is_told_after_the_timeout(self):
        with rig.serve(rig.pipeline(*ROWS, **WAITS)) as server:
            with server.open("train", timeout=0.5) as reader:
                server.kill()
                for _ in range(2):
                    with self.assertRaises(tundish.ServerGone):
                        reader.next()

    def test_a_server_that_is_late_is_waited_for(self):
        with rig.serve(rig.pipeline(*ROWS)) as server:
            server.kill()
            os.unlink(server.socket)
            timer = threading.Timer(0.5, server.start)
            timer.start()
            with server.open("train") as reader:
                self.assertEqual(reader.next().step, 0)
            timer.join()

    def test_refusals_are_the_servers_own_sentence(self):
        with rig.serve(rig.pipeline(*ROWS)) as server:
            with self.assertRaisesRegex(tundish.ArgumentError, "other") as caught:
                server.open("other")
            self.assertIsInstance(caught.exception, ValueError)
            self.assertEqual(caught.exception.status, "E_ARGUMENT")
            self.assertEqual(caught.exception.remedy, "fix the program")
            with server.open("train"):
                with self.assertRaisesRegex(tundish.ArgumentError, "replica"):
                    server.open("train")
            for options in ({"device": "gpu"}, {"format": "mxnet"}, {"on_hold": "no"}, {"timeout": 0}):
                with self.assertRaises(tundish.ArgumentError):
                    server.open("train", **options)
            with self.assertRaises(tundish.PlaceError):
                server.open("train", place="nowhere")

    def test_a_pipeline_file_is_served_where_nothing_else_serves_it(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ):
            os.environ.pop("TUNDISH_SERVER", None)
            file = f"{folder}/rows.yaml"
            Path(file).write_text(rig.pipeline(*ROWS))
            with tundish.open(file) as reader:
                self.assertEqual(reader.next().step, 0)
            with self.assertRaisesRegex(tundish.ArgumentError, "there is a server already"):
                tundish.open(file, server="/nowhere")
            os.environ["WORLD_SIZE"] = "2"
            with self.assertRaisesRegex(tundish.ArgumentError, f"tundish-launch {file} --replicas 2 -- python TRAINER"):
                tundish.open(file)
            os.environ["TUNDISH_SERVER"] = "/nowhere"
            with self.assertRaisesRegex(tundish.ArgumentError, "there is a server already"):
                tundish.open(Path(file))

    def test_objects_show_columns_types_and_first_values(self):
        stages = (
            "range: {stop: 9}",
            'map: {x: "cast(value, float32) / 3"}',
            "as_string: {columns: value, output: name, width: 26, fill: '0'}",
            "batch: 5",
        )
        with rig.serve(rig.pipeline(*stages)) as server, server.open("train") as reader:
            batch = reader.next()
            lines = [line.split(None, 2) for line in repr(batch).splitlines()]
            self.assertEqual(repr(reader).splitlines()[0], "<tundish.Reader open")
            self.assertEqual(sorted(line.split() for line in repr(reader)[:-1].splitlines()[1:]), [
                ["name", "string[-1]"], ["value", "int64[-1]"], ["x", "float32[-1]"],
            ])  # fmt: skip
            self.assertEqual(lines[0], ["<tundish.Batch", "epoch", "0 step 0"])
            self.assertEqual(sorted((*each[:2], each[2].rstrip(">")) for each in lines[1:]), [
                ("name", "string[5]", " ".join(f"b'{'0' * 24}'..." for _ in range(4)) + " ..."),
                ("value", "int64[5]", "0 1 2 3 ..."),
                ("x", "float32[5]", "0 0.3333 0.6667 1 ..."),
            ])  # fmt: skip
            self.assertEqual(repr(batch["name"][:1]), f"Strings([1], 26 bytes: b'{'0' * 24}'...)")
            batch.release()
            self.assertIn("value", repr(batch))

    def test_a_server_of_another_layout_is_refused(self):
        kind = (socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with tempfile.TemporaryDirectory() as folder, socket.socket(*kind) as server:
            server.bind(f"{folder}/server")
            server.listen()

            def answer():
                connection, _ = server.accept()
                hello = connection.recv(1 << 16)
                said = b"the server's layout is 9.0, the library's another: install one release"
                head = struct.pack("=4sHHiIQQQ", hello[:4], 65, 0, -41, len(said), 0, 0, 0)
                connection.send(head + said)
                connection.recv(1)
                connection.close()

            thread = threading.Thread(target=answer)
            thread.start()
            with self.assertRaisesRegex(tundish.LayoutError, "layout is 9.0.*fix the installation"):
                tundish.open("train", server=f"{folder}/server", timeout=60)
            thread.join()

    def test_bad_data_is_the_error_of_its_step(self):
        source = "csv: {filenames: [rows.csv], record_defaults: [int64], column_names: [value]}"
        with rig.serve(rig.pipeline(source, "batch: 2"), files={"rows.csv": b"1\n2\n3\nx\n"}) as server:
            with server.open("train") as reader:
                self.assertEqual(reader.next()["value"].tolist(), [1, 2])
                for _ in range(2):
                    with self.assertRaisesRegex(tundish.DataError, r"rows\.csv.*fix the input"):
                        reader.next()


class Interrupts(unittest.TestCase):
    def interrupted(self, server, script):
        """A process that says `ready` and waits for ever is interrupted: its last line."""
        process = subprocess.Popen(
            [sys.executable, "-c", "import tundish\n" + script],
            env=server.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "ready\n")
        time.sleep(0.3)  # so that it is most likely inside the wait; it ends as it should in any case
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=rig.DEADLINE_S)
        return out, err.splitlines()[-1:]

    def test_waiting_for_a_batch_hears_ctrl_c(self):
        with rig.serve(rig.pipeline(*ROWS, **WAITS)) as server:
            script = "reader = tundish.open('train')\nprint('ready', flush=True)\nreader.next()"
            self.assertEqual(self.interrupted(server, script), ("", ["KeyboardInterrupt"]))

    def test_waiting_for_a_server_hears_ctrl_c(self):
        with rig.serve(rig.pipeline(*ROWS)) as server:
            server.kill()
            script = "print('ready', flush=True)\ntundish.open('train', timeout=1e9)"
            self.assertEqual(self.interrupted(server, script), ("", ["KeyboardInterrupt"]))

    def test_a_handler_that_returns_lets_the_wait_go_on(self):
        with rig.serve(rig.pipeline(*ROWS, **WAITS)) as server:
            script = (
                "import signal\nheard = []\n"
                "signal.signal(signal.SIGUSR1, lambda *_: heard.append(1))\n"
                "reader = tundish.open('train')\nprint('ready', flush=True)\n"
                "print(reader.next().step, heard)"
            )
            process = subprocess.Popen(
                [sys.executable, "-c", "import tundish\n" + script],
                env=server.environment, stdout=subprocess.PIPE, text=True,
            )
            self.addCleanup(process.kill)
            self.assertEqual(process.stdout.readline(), "ready\n")
            process.send_signal(signal.SIGUSR1)
            with server.open("train", group="other"):
                self.assertEqual(process.communicate(timeout=rig.DEADLINE_S)[0], "0 [1]\n")


class Missing(unittest.TestCase):
    """Libraries that are not installed are named where they are needed, and only there."""

    def run_without(self, modules, script):
        with rig.serve(rig.pipeline(*ROWS)) as server:
            head = "import sys\n" + "".join(f"sys.modules[{m!r}] = None\n" for m in modules)
            head += "import tundish\nbatch = tundish.open('train').next()\n"
            return server.python(head + script).stdout

    def test_numpy(self):
        script = (
            "print(memoryview(batch.array('value')).tolist()[:3])\n"
            "try:\n    batch['value']\nexcept ImportError as error:\n    print(error)"
        )
        numbers, said = self.run_without(["numpy"], script).splitlines()
        self.assertEqual(numbers, "[0, 1, 2]")
        self.assertIn("pip install numpy", said)
        self.assertIn("batch.array", said)

    def test_a_light_import(self):
        script = (
            "import sys, tundish\n"
            "print([m for m in ('numpy', 'torch', 'jax', 'tensorflow', 'keras', 'asyncio')"
            " if m in sys.modules])"
        )
        environment = dict(os.environ, PYTHONPATH=rig.PACKAGE)
        command = [sys.executable, "-S", "-c", script]
        out = subprocess.run(command, env=environment, capture_output=True, text=True)
        self.assertEqual((out.stdout, out.stderr), ("[]\n", ""))

    def test_nothing_is_made_but_by_a_reader(self):
        from tundish import _tundish

        for made in (tundish.Batch, _tundish.Batch, _tundish.Array, _tundish.Schema):
            with self.assertRaises(TypeError):
                made()
        bare = tundish.Reader.__new__(tundish.Reader)
        with self.assertRaises(tundish.MisuseError):
            bare.next()
        with self.assertRaises(TypeError):
            _tundish.Epoch(3, 4)


if __name__ == "__main__":
    unittest.main()
