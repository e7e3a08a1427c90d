"""Helpers, which make parts of batches for a server, and what becomes of the batches when they go."""

import contextlib
import os
import re
import signal
import socket
import struct
import subprocess
import threading
import time
import unittest
from pathlib import Path

from launcher_rig import LauncherOfJobs, descendants, variable_of
from nodes_rig import why_not
from rig import DEADLINE_S, READER, TUNDISH, Rig, batches, place, stop
from store import Store

RECEIVED = os.environ.get("TUNDISH_RECEIVED", "")
ROWS, WORDS, TIMES = 4000, 12, 10
NAMES = ", ".join(f"c{i}" for i in range(WORDS))
PARSED = f"decode_csv: {{record_defaults: [int64{', string' * WORDS}], column_names: [value, {NAMES}]}}"
HASHED = f"hashing: {{columns: [{NAMES}], num_bins: 1000}}"
# Takes longer than the trainer does, so that it waits.
SLOW = f"regex_replace: {{columns: [{NAMES}], pattern: '([0-9])x', rewrite: '\\\\1-'}}"
NUMBER = "string_to_number: {columns: value, out_type: int64}"
SHUFFLE = "shuffle: {buffer_size: 1000, seed: 3, reshuffle_each_iteration: false}"


class HelpersRig(Rig):
    def setUp(self):
        super().setUp()
        self.environment["TUNDISH_HELPER_KEY"] = "a key that is long enough"
        self.write_rows()

    def write_rows(self, bad=()):
        """Rows of a number and words; those of `bad` have no number."""
        words = [[f"w{row * 31 % 97}x{(row + column) % 13}" for column in range(WORDS)]
                 for row in range(ROWS)]
        (self.path / "rows.csv").write_text("".join(
            f"{'?' if row in bad else row},{','.join(rest)}\n" for row, rest in enumerate(words)))

    def text_lines(self):
        return f"text_line: {{filenames: [{self.path}/rows.csv]}}"

    def hashed(self, deliver, distribute="{replicas: 1}"):
        """A stream of columns of one size, made in place."""
        return self.pipeline([self.text_lines(), SHUFFLE, PARSED, SLOW, HASHED, "batch: 64"],
                             distribute, deliver)

    def cut(self, deliver, replicas):
        """A stream whose slices are cut from batches that are padded to their longest row."""
        return self.pipeline(
            [self.text_lines(), SHUFFLE, PARSED, SLOW, "string_split: {columns: [c0], sep: '-'}",
             "padded_batch: 64"],
            f"{{replicas: {replicas}}}", deliver)

    def helper(self, file, *options, listen="127.0.0.1:0"):
        """A helper and its port, once it can be called."""
        process, word = self.start_until(
            [TUNDISH, "helper", file, "--listen", listen, "--threads", "1", *options],
            "helper.log", lambda word: word.startswith("ready "))
        return process, int(word.split()[1])

    def serve_helped(self, file, ports, *options):
        addresses = ",".join(f"127.0.0.1:{port}" for port in ports)
        return self.serve(file, "--threads", "1", "--helpers", addresses, *options)

    def made(self, what="parts"):
        """Of each helper, by its port."""
        return {int(one["helper"].split(":")[1]): one[what] for one in self.figures()["helpers"]}

    def helper_log(self):
        return (self.path / "helper.log").read_text()

    def received(self, name, replicas=1):
        """The bytes of every column that trainers are given."""
        folders = [self.path / f"{name}.{replica}" for replica in range(replicas)]
        for folder in folders:
            folder.mkdir()
        trainers = [self.start([RECEIVED, folder], TUNDISH_REPLICA=str(replica))
                    for replica, folder in enumerate(folders)]
        for said in self.all_lines(trainers):
            self.assertRegex(said[-1], "^received [1-9]", said)
        return [{path.name: path.read_bytes() for path in folder.iterdir()} for folder in folders]

    def read_on(self, replica=0, *options):
        """A trainer that reads as long as there is something."""
        command = " ".join([READER, *options])
        return self.start(["sh", "-c", f"exec {command} >>{self.path}/read.{replica}"],
                          TUNDISH_REPLICA=str(replica))

    def assert_epochs_are(self, expected, replica=0):
        """What read_on has read: whole epochs, each as expected, and a part of one more."""
        found = batches((self.path / f"read.{replica}").read_text().splitlines())
        for i, (epoch, step, values) in enumerate(found):
            want = expected[i % len(expected)]
            self.assertEqual((epoch, step, values), (i // len(expected), *want[1:]))


class Helpers(HelpersRig):
    def assert_same_columns(self, stages, deliver="", skipped=0):
        """A trainer is given the same bytes with helpers as without, of which they made some."""
        at = stages.index(SHUFFLE) + 1
        file = self.pipeline(stages[:at] + [f"repeat: {TIMES}"] + stages[at:],
                             deliver=f"{{epochs: 1{deliver}}}")
        server = self.serve(file, "--threads", "1")
        expected = self.received("alone")
        stop(server)
        helpers = [self.helper(file) for _ in range(2)]
        ports = [port for _, port in helpers]
        for turn in range(1000):
            server = self.serve_helped(file, ports)
            self.wait_until(lambda: all(self.made("connections").values()))
            self.assertEqual(self.received(f"helped.{turn}"), expected)
            made, remade = self.made(), self.made("remade")
            self.wait_until(lambda: self.figures()["rows_skipped"] == skipped)
            stop(server)
            if any(made.values()):
                break
        self.assertEqual(set(remade.values()), {0}, self.log())
        for process, _ in helpers:
            self.assertEqual(stop(process), 0)

    def test_make_columns_of_one_size_in_their_slots(self):
        self.assert_same_columns([self.text_lines(), SHUFFLE, PARSED, SLOW, HASHED, "batch: 64"])

    def test_make_texts_whose_lengths_are_known(self):
        self.assert_same_columns([self.text_lines(), SHUFFLE, "batch: 512"])

    def test_make_ragged_columns_and_texts(self):
        self.assert_same_columns(
            [self.text_lines(), SHUFFLE, "batch: 64", 'string_split: {sep: ","}'])

    def test_make_windows_that_overlap(self):
        self.assert_same_columns([
            self.text_lines(), SHUFFLE, PARSED, SLOW, "window: {size: 8, shift: 2, drop_remainder: true}", "batch: 16",
        ])

    def test_make_sparse_columns(self):
        self.assert_same_columns([
            self.text_lines(), SHUFFLE, PARSED, SLOW, HASHED, "batch: 64", f"select: [value, {NAMES}]",
            "to_sparse: {columns: [c0, c1]}",
        ])

    def test_make_encoded_columns(self):
        stages = [self.text_lines(), SHUFFLE, PARSED, SLOW, HASHED, "batch: 64"]
        self.assert_same_columns(stages, ", compression: narrow")

    def test_make_columns_under_zstd(self):
        stages = [self.text_lines(), SHUFFLE, PARSED, "batch: 64"]
        self.assert_same_columns(stages, ", compression: zstd")

    def test_make_a_batch_once_for_the_slices_that_are_cut_from_it(self):
        file = self.cut("{epochs: 10}", 3)
        server = self.serve(file, "--threads", "1")
        expected = self.received("alone", 3)
        stop(server)
        _, port = self.helper(file)
        for turn in range(1000):
            server = self.serve_helped(file, [port])
            self.wait_until(lambda: self.made("connections")[port])
            self.assertEqual(self.received(f"helped.{turn}", 3), expected)
            parts, steps, remade = (self.made(what)[port] for what in ("parts", "steps", "remade"))
            stop(server)
            self.assertEqual((parts, remade), (steps, 0), self.log())
            if parts > 0:
                break

    def test_draw_as_their_server_would(self):
        self.assert_same_columns([
            "range: 4000", SHUFFLE, "expand_dims: {columns: [value], axis: -1}",
            "cast: {columns: [value], dtype: float32}", "reshape: {columns: [value], shape: [1, 1, 1]}",
            "random_brightness: {columns: [value], factor: 0.5, seed: 5}", "batch: 512",
        ])

    def test_read_the_files_of_a_pattern_and_a_function(self):
        for i in range(4):
            (self.path / f"part-{i}.csv").write_text(
                (self.path / "rows.csv").read_text().replace("w", f"v{i}"))
        self.assert_same_columns([
            f'list_files: {{file_pattern: "{self.path}/part-*.csv", seed: 3}}',
            "interleave: {dataset: [text_line], cycle_length: 2}", SHUFFLE, PARSED, SLOW, HASHED, "batch: 64",
        ])

    def test_read_files_by_their_paths(self):
        folder = self.path / "small"
        folder.mkdir()
        for i in range(200):
            (folder / f"{i:03}").write_bytes(bytes([i]) * (i + 1))
        self.assert_same_columns([
            f'list_files: {{file_pattern: "{folder}/*", shuffle: false}}', SHUFFLE,
            "read_file: {columns: [value]}", "ragged_batch: 64",
        ])

    def store(self):
        store = Store()
        self.addCleanup(store.close)
        return store

    def test_read_objects_by_their_names(self):
        store = self.store()
        for i in range(200):
            store.put(f"/b/{i:03}", b"%d" % i)
        (self.path / "names").write_text("".join(f"{store.url}/b/{i:03}\n" for i in range(200)))
        self.assert_same_columns([
            f"text_line: {{filenames: [{self.path}/names]}}", SHUFFLE, "read_file: {columns: [value]}",
            "ragged_batch: 64",
        ])
        # The server has asked for the version of what it did not read.
        self.assertTrue(any(method == "HEAD" for method, _, _ in store.requests))

    def serve_alone(self, file, said):
        """With a helper that cannot be used: the same rows, and the log says why."""
        _, port = self.helper(file)
        expected = self.peek(file)[0]
        self.serve_helped(file, [port])
        trainer = self.read_on()
        self.wait_for_log(f"parts are made by this server alone: {said}")
        stop(trainer)
        self.assert_epochs_are(expected)
        self.assertEqual(self.made()[port], 0)

    def test_make_nothing_of_objects_without_a_version(self):
        store = self.store()
        store.tags = False
        store.put("/b/rows.csv", (self.path / "rows.csv").read_bytes())
        lines = f"text_line: {{filenames: ['{store.url}/b/rows.csv']}}"
        file = self.pipeline([lines, PARSED, SLOW, HASHED, "batch: 64"],
                             deliver="{epochs: 100000}")
        self.serve_alone(file, f"{store.url}/b/rows.csv has neither an ETag nor a date")

    def test_make_nothing_of_objects_without_a_version_that_rows_name(self):
        store = self.store()
        store.tags = False
        for i in range(64):
            store.put(f"/b/{i:03}", b"%d" % i)
        (self.path / "names").write_text("".join(f"{store.url}/b/{i:03}\n" for i in range(64)))
        file = self.pipeline([
            f"text_line: {{filenames: [{self.path}/names]}}", "read_file: {columns: [value]}", NUMBER,
            "batch: 8",
        ], deliver="{epochs: 100000}")
        self.serve_alone(file, store.url)

    def test_count_the_rows_that_they_leave_out(self):
        bad = range(0, ROWS, 7)
        self.write_rows(bad)
        stages = [self.text_lines(), SHUFFLE, PARSED, SLOW, HASHED, "batch: 64"]
        self.assert_same_columns(stages, ", on_error: skip", TIMES * len(bad))

    def test_refuse_a_server_with_another_key_or_pipeline(self):
        file = self.hashed("{epochs: 2}")
        expected = self.peek(file, "--epochs", "2")[0]
        other = self.path / "other.yaml"
        other.write_text(Path(file).read_text().replace("1000, seed", "999, seed"))
        _, differs = self.helper(str(other))
        self.environment["TUNDISH_HELPER_KEY"] = "another key, as long as it"
        _, strange = self.helper(file)
        self.environment["TUNDISH_HELPER_KEY"] = "a key that is long enough"
        self.serve_helped(file, [differs, strange])
        self.assertEqual(batches(self.lines(self.read())), expected)
        self.wait_for_log(f"helper 127.0.0.1:{differs} is lost: it refuses: its version of Tundish")
        self.wait_for_log(f"helper 127.0.0.1:{strange} is lost: ")
        self.assertEqual(set(self.made().values()), {0})
        self.wait_until(lambda: "a caller does not know this job's key" in self.helper_log())

    def test_are_not_used_for_rows_that_only_the_server_has(self):
        file = self.pipeline(["range: 4000", "batch: 8", "unbatch", "batch: 16"])
        _, port = self.helper(file)
        self.serve_helped(file, [port])
        self.assertEqual(batches(self.lines(self.read())), self.peek(file)[0])
        self.wait_for_log("parts are made by this server alone: stage 'unbatch'")
        plan = subprocess.run([TUNDISH, "plan", file], capture_output=True, text=True).stdout
        self.assertIn("helpers: none can be used: stage 'unbatch' (line", plan)
        self.assertEqual(self.made(), {})

    def resume(self, *options):
        """Go on, with another server, where a trainer of a stream without a seed stood."""
        shuffle = "shuffle: {buffer_size: 1000}"
        file = self.pipeline([self.text_lines(), shuffle, PARSED, SLOW, HASHED, "batch: 64"],
                             deliver="{epochs: 100000}")
        _, port = self.helper(file)
        server = self.serve_helped(file, [port], *options)
        stood = place(self.lines(self.read("--batches", "50")))
        server.kill()
        server.wait()
        self.serve_helped(file, [port], *options)
        reader = self.start(["sh", "-c", f"exec {READER} --place {stood} >{self.path}/read"])
        self.wait_until(lambda: self.made()[port] > 0 or "it refuses" in self.log())
        self.assertNotIn("it refuses", self.log())
        stop(reader)

    def test_go_on_at_a_place_of_a_stream_without_a_seed(self):
        self.resume()

    def test_go_on_from_a_file_of_a_stream_without_a_seed(self):
        folder = self.path / "state"
        folder.mkdir()
        self.resume("--state", str(folder))

    def test_need_a_key(self):
        file = self.hashed("{epochs: 1}")
        del self.environment["TUNDISH_HELPER_KEY"]
        for command in (["serve", file, "--helpers", "127.0.0.1:1"],
                        ["helper", file, "--listen", "127.0.0.1:0"]):
            done = subprocess.run([TUNDISH, *command], env=self.environment, capture_output=True,
                                  text=True, timeout=DEADLINE_S)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("TUNDISH_HELPER_KEY", done.stderr)


class HelperDeaths(HelpersRig):
    KILLS = int(os.environ.get("TUNDISH_HELPER_KILLS", "6"))

    def setUp(self):
        super().setUp()
        self.start_stream(self.hashed("{epochs: 100000}"))

    def start_stream(self, file):
        self.file = file
        self.expected = self.peek(self.file, "--epochs", "1")
        rows = [v for slices in self.expected.values() for _, _, vs in slices for v in vs]
        self.assertEqual(sorted(rows), list(range(ROWS)))
        self.ours, self.port = self.helper(self.file)
        self.server = self.serve_helped(self.file, [self.port])
        self.trainers = [self.read_on(replica) for replica in self.expected]

    def wait_for_parts(self):
        """Until the helper has made more of them."""
        before = self.made()[self.port]
        self.wait_until(lambda: self.made()[self.port] > before)

    def finish(self):
        stop(self.server)
        for replica, trainer in enumerate(self.trainers):
            trainer.wait(timeout=DEADLINE_S)
            self.assert_epochs_are(self.expected[replica], replica)

    def test_lose_no_row_when_they_are_killed(self):
        for _ in range(self.KILLS):
            self.wait_for_parts()
            self.ours.kill()
            self.ours.wait()
            self.wait_until(lambda: self.made("connections")[self.port] == 0)
            self.ours, _ = self.helper(self.file, listen=f"127.0.0.1:{self.port}")
        self.wait_for_parts()
        self.assertGreaterEqual(self.made("lost")[self.port], self.KILLS)
        self.finish()

    def test_lose_no_row_when_they_stand_still(self):
        self.wait_for_parts()
        self.ours.send_signal(signal.SIGSTOP)
        self.wait_until(lambda: self.made("remade")[self.port] + self.made("overtaken")[self.port] > 0)
        steps = self.figures()["steps"]
        self.wait_until(lambda: self.figures()["steps"] > steps)
        self.wait_for_log("is lost: no answer in time; its parts are made here until it is back")
        self.ours.send_signal(signal.SIGCONT)
        self.wait_for_parts()
        self.finish()


class HelperDeathsOfCutBatches(HelperDeaths):
    KILLS = 2

    def setUp(self):
        HelpersRig.setUp(self)
        self.start_stream(self.cut("{epochs: 100000}", 3))


class Relay:
    """Stands between a server and its helper without the key: hands on what they say, and changes a
    byte now and then of what comes from one of them, after the handshake and a first part."""

    FIRST, EVERY = 10_000, 5_003

    def __init__(self, port, changes_answers):
        self.to, self.changes_answers = port, changes_answers
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.port = self.listening.getsockname()[1]
        self.sockets = [self.listening]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                server = self.listening.accept()[0]
                helper = socket.create_connection(("127.0.0.1", self.to))
                self.sockets += [server, helper]
                for source, to, is_answer in ((server, helper, False), (helper, server, True)):
                    threading.Thread(
                        target=self.hand_on, args=(source, to, is_answer == self.changes_answers), daemon=True
                    ).start()

    def hand_on(self, source, to, changes):
        passed, wanted = 0, self.FIRST if self.changes_answers else self.FIRST // 4
        with contextlib.suppress(OSError):
            while data := bytearray(source.recv(65536)):
                while changes and wanted < passed + len(data):
                    data[wanted - passed] ^= 1
                    wanted += self.EVERY
                passed += len(data)
                to.sendall(data)
        for end in (source, to):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self):
        for one in self.sockets:
            one.close()


class HelperRelays(HelpersRig):
    CHANGED = "a message was changed on the way, or is not the next one of this connection"

    def read_through_relay(self, changes_answers, is_noticed):
        file = self.hashed("{epochs: 100000}")
        expected = self.peek(file, "--epochs", "1")[0]
        _, port = self.helper(file)
        relay = Relay(port, changes_answers)
        self.addCleanup(relay.close)
        server = self.serve_helped(file, [relay.port])
        trainer = self.read_on()
        self.wait_until(is_noticed)
        stop(server)
        trainer.wait(timeout=DEADLINE_S)
        self.assert_epochs_are(expected)

    def test_cannot_change_answers(self):
        self.read_through_relay(True, lambda: f"is lost: {self.CHANGED}; its parts" in self.log())

    def test_cannot_change_requests(self):
        self.read_through_relay(
            False, lambda: f"connection was cut: {self.CHANGED}" in self.helper_log())


class HelperStaleFiles(HelpersRig):
    """A helper's copy of a file has the size and the sampled pages of the server's, but is another."""

    SAMPLES, SAMPLE_BYTES, LONG_BYTES = 16, 4096, 17 << 20

    def write_copies(self, bytes_at_least, stale_every):
        """rows.csv in a/ and b/, where some numbers are larger by 90,000 than there are rows."""
        row_bytes = max(64, bytes_at_least // ROWS + 1)
        lines = [f"{row:05}," + ",".join(f"w{row * 31 % 97}x{(row + column) % 13}"
                                         for column in range(WORDS)) for row in range(ROWS)]
        lines = [f"{line},{'':.<{row_bytes}}"[:-1] + "\n" for line in lines]
        text = "".join(lines).encode()
        stale, at = bytearray(text), 0
        stride = (len(text) - self.SAMPLE_BYTES) // (self.SAMPLES - 1)
        for row, line in enumerate(lines):
            is_sampled = any(i * stride - 8 < at < i * stride + self.SAMPLE_BYTES
                             for i in range(self.SAMPLES))
            if row % stale_every == stale_every // 2 and not is_sampled:
                stale[at] = ord("9")
            at += len(line)
        self.assertNotEqual(stale, text)
        for folder, content in (("a", text), ("b", stale)):
            (self.path / folder).mkdir()
            (self.path / folder / "rows.csv").write_bytes(content)

    def file_of_copies(self, deliver="{epochs: 100000}"):
        parsed = PARSED.replace("string]", "string, string]").replace(f"{NAMES}]", f"{NAMES}, filling]")
        return self.pipeline(["text_line: {filenames: [rows.csv]}", SHUFFLE, parsed, SLOW, HASHED,
                              f"select: [value, {NAMES}]", "batch: 64"], deliver=deliver)

    def read_until_barred(self, file):
        """What a trainer has read until then."""
        _, port = self.helper(file, "--root", str(self.path / "b"))
        server = self.serve_helped(file, [port], "--root", str(self.path / "a"))
        trainer = self.read_on()
        self.wait_until(lambda: self.made("barred")[port] == 1)
        figures = self.figures()["helpers"][0]
        stop(server)
        trainer.wait(timeout=DEADLINE_S)
        found = batches((self.path / "read.0").read_text().splitlines())
        self.assertIn(f"It had made {figures['parts']} parts, in {figures['steps']} steps", self.log())
        return found, figures

    def named_steps(self):
        """Ranges that the log names: ((epoch, step), (epoch, step))."""
        ranges, number = [], r"(?:epoch (\d+) step )?(\d+)"
        for line in self.log().splitlines():
            epoch = None
            for first in line.partition(" had made rows of ")[2].split(", "):
                ends = re.fullmatch(f"{number}(?: to {number})?", first)
                if ends is None:
                    continue
                epoch = int(ends[1]) if ends[1] else epoch
                last_epoch = int(ends[3]) if ends[3] else epoch
                ranges.append(((epoch, int(ends[2])), (last_epoch, int(ends[4] or ends[2]))))
                epoch = last_epoch
        return ranges

    def test_of_little_size_are_found_before_a_row_is_made(self):
        self.write_copies(0, 200)
        found, figures = self.read_until_barred(self.file_of_copies())
        self.assertEqual([v for _, _, values in found for v in values if v >= ROWS], [])
        self.assertEqual((figures["parts"], self.named_steps()), (0, []))
        self.assertIn("is not used any more: it says: rows.csv has other bytes here than at the server",
                      self.log())

    def test_are_found_by_their_bytes_and_the_steps_are_named(self):
        self.write_copies(self.LONG_BYTES, 200)
        found, figures = self.read_until_barred(self.file_of_copies())
        wrong = {(epoch, step) for epoch, step, values in found if any(v >= ROWS for v in values)}
        named = self.named_steps()
        self.assertEqual([one for one in wrong if not any(a <= one <= b for a, b in named)], [])
        if figures["steps"] > 0:
            self.assertEqual(named[0][0], (figures["first_epoch"], figures["first_step"]))
            self.assertEqual(named[-1][1], (figures["last_epoch"], figures["last_step"]))

    def test_of_arrays_are_refused_wherever_they_differ(self):
        head = b"{'descr': '<i8', 'fortran_order': False, 'shape': (100000,)}".ljust(117) + b"\n"
        data = bytearray(b"\x93NUMPY\x01\x00v\x00" + head + struct.pack("<100000q", *range(100000)))
        for folder in "ab":
            (self.path / folder).mkdir()
            (self.path / folder / "rows.npy").write_bytes(data)
            data[(len(data) - self.SAMPLE_BYTES) // (self.SAMPLES - 1) // 2] ^= 1  # between two samples
        file = self.pipeline(["from_tensor_slices: {value: {npy: rows.npy}}", "batch: 64"],
                             deliver="{epochs: 1}")
        for folder, said in (("b", "differ from the server's"), ("a", "makes parts of stream 'train'")):
            process, port = self.helper(file, "--root", str(self.path / folder))
            server = self.serve_helped(file, [port], "--root", str(self.path / "a"))
            self.wait_until(lambda: said in self.log() + self.helper_log())
            stop(server)
            stop(process)

    def read_stale_files(self, stages):
        found, _ = self.read_until_barred(self.pipeline(stages, deliver="{epochs: 100000}"))
        self.assertEqual([v for _, _, values in found for v in values if v >= ROWS], [])

    def test_that_rows_name_are_found_before_they_are_used(self):
        for folder in "ab":
            (self.path / folder).mkdir()
            for row in range(ROWS):
                (self.path / folder / f"{row:05}.txt").write_bytes(
                    b"%05d" % (row + 90000 * (folder == "b" and row % 200 == 7)))
            (self.path / folder / "names").write_text("".join(f"{i:05}.txt\n" for i in range(ROWS)))
        self.read_stale_files([
            "text_line: {filenames: [names]}", SHUFFLE, "read_file: {columns: [value]}",
            "regex_replace: {columns: value, pattern: '([0-9])x', rewrite: y}", NUMBER, "batch: 64",
        ])
        self.assertRegex(self.log(), r"\d+.txt has other bytes there than at this server")

    def test_of_folders_are_found_before_they_are_used(self):
        for folder in "ab":
            for row in range(ROWS):
                path = self.path / folder / "all" / f"class-{row % 3}" / f"{row:05}.bmp"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(b"%05d" % (row + 90000 * (folder == "b" and row % 200 == 7)))
        stages = ["directory: {directory: all}", "shuffle: {buffer_size: 1000, seed: 3}", "select: value",
                  "regex_replace: {columns: value, pattern: '([0-9])x', rewrite: y}", NUMBER, "batch: 64"]
        self.read_stale_files(stages)
        self.assertRegex(self.log(), r"all/class-./\d+.bmp has other bytes there than at this server")

    def test_do_not_leave_out_rows(self):
        self.write_copies(0, 200)
        stale = self.path / "b" / "rows.csv"
        stale.write_bytes(re.sub(rb"(?m)^9", b"?", stale.read_bytes()))
        found, _ = self.read_until_barred(self.file_of_copies("{epochs: 100000, on_error: skip}"))
        rows = {}
        for epoch, _, values in found:
            rows.setdefault(epoch, []).extend(values)
        for epoch, values in rows.items():
            missing = set(range(ROWS)) - set(values) if epoch < max(rows) else set()
            self.assertEqual((missing, len(values) - len(set(values))), (set(), 0), epoch)


class LauncherOfHelpers(LauncherOfJobs, HelpersRig):
    def kill_helper(self, launcher):
        found = [pid for pid, command in descendants(launcher.pid).items()
                 if command[:2] == [TUNDISH, "helper"]]
        os.kill(found[0], signal.SIGKILL)

    def trainers(self, launcher):
        return [pid for pid, command in descendants(launcher.pid).items() if command[:1] == [READER]]

    def run_job(self, file, replicas, *options):
        """A job of two helpers, one of which is killed while the trainers read."""
        launcher = self.job(file, replicas, '"$READER" --delay-ms 2', "--helpers", "2", *options)
        self.wait_until_said(launcher, " makes parts, ")
        while len(found := self.trainers(launcher)) == 0:
            self.assertIsNone(launcher.poll(), self.log())
        self.assertIsNone(variable_of(found[0], "TUNDISH_HELPER_KEY"))
        self.kill_helper(launcher)
        self.wait_until_said(launcher, "a helper was killed by signal 9: it is started again")
        self.assertEqual(self.status_of(launcher), 0, self.log())

    def wait_until_said(self, launcher, text):
        while text not in self.log():
            self.assertIsNone(launcher.poll(), self.log())
            time.sleep(0.02)

    def test_starts_helpers_and_loses_none(self):
        self.run_job(self.hashed("{epochs: 20}"), 1)
        self.assertEqual(self.all_rows(range(1)), sorted(list(range(ROWS)) * 20))

    @unittest.skipIf(why_not(), "needs MPI")
    def test_gives_helpers_to_several_nodes(self):
        self.run_job(self.hashed("{epochs: 20}", "{replicas: 1, auto_shard: DATA}"), 1, "--nodes", "2")
        rows = self.all_rows(range(1)) + self.all_rows(range(1, 2))
        self.assertEqual(sorted(rows), sorted(list(range(ROWS)) * 20))


if __name__ == "__main__":
    unittest.main()
