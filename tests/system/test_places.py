"""Places: taken from one job and opened by another, on other replicas, of other files."""

import re
import struct
import time
import unittest

from rig import Rig, batches, place, stop

ROWS = [
    "range: {stop: 600}",
    "shuffle: {buffer_size: 50}",
    'filter: "value % 3 != 1"',
    "repeat: 2",
    "batch: 20",
]


NUMBERS = ["text_line: rows.txt", "string_to_number: {out_type: int64}"]


class Places(Rig):
    def taken_after(self, file, count, *options):
        server = self.serve(file, *options)
        token = place(self.lines(self.read("--batches", str(count))))
        stop(server)
        return token

    def serve_through(self, file):
        server = self.serve(file)
        self.lines(self.read())
        return server

    def test_are_short(self):
        token = self.taken_after(self.pipeline(ROWS), 3)
        self.assertLess(len(token), (200 + 2 * 16) * 4 / 3 + 6)

    def test_go_on_in_later_epochs(self):
        file = self.pipeline(ROWS, deliver="{epochs: 3}")
        expected = self.peek(file, "--epochs", "3")[0]
        token = self.taken_after(file, 95)
        self.assertGreater(expected[95][0], 1)
        self.serve(file)
        self.assertEqual(batches(self.lines(self.read("--place", token))), expected[95:])

    def test_are_good_for_other_numbers_of_replicas_and_threads(self):
        expected = self.peek(self.pipeline(ROWS))[0]
        token = self.taken_after(self.pipeline(ROWS), 11, "--threads", "1")
        self.serve(self.pipeline(ROWS, distribute="{replicas: 2}"), "--threads", "3")
        readers = [self.read("--place", token, replica=r) for r in range(2)]
        halves = [batches(self.lines(reader)) for reader in readers]
        whole = [(e, s, one + other) for (e, s, one), (_, _, other) in zip(*halves)]
        self.assertEqual(whole, expected[11:])

    def assert_few_are_decided_again(self, stages, steps, at_least):
        """Resumed after `steps` with the notes of a run, with notes that are damaged, and with those of a server
        that was killed."""
        self.write_rows()
        self.assert_noted_order_goes_on(self.pipeline([*NUMBERS, *stages]), steps, at_least)

    def write_rows(self):
        (self.path / "rows.txt").write_text("".join(f"{row}\n" for row in range(30000)))

    def assert_noted_order_goes_on(self, file, steps, at_least):
        expected = self.peek(file)[0]
        token = self.taken_after(file, steps)
        stop(self.serve_through(file))  # it notes all landmarks
        kept = next((self.path / "cache").glob("*.landmarks"))

        def passed_over():
            (self.path / "log").unlink()
            server = self.serve(file)
            self.assertEqual(batches(self.lines(self.read("--place", token))), expected[steps:])
            stop(server)
            return [int(count) for count in re.findall(r"of (\d+) elements the cache folder", self.log())]

        self.assertGreater(passed_over()[0], at_least)
        whole = kept.read_bytes()
        kept.write_bytes(whole[:-1])
        passed_over()
        kept.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        passed_over()
        server = self.serve_through(file)
        server.kill()
        server.wait()
        passed_over()

    def test_deep_in_a_filtered_source_decide_few_rows_again(self):
        # Of 22,500; and what the buffer holds was drawn of the last about 100 * log(100).
        self.assert_few_are_decided_again(['filter: "value % 3 != 1"', "shuffle: {buffer_size: 100}", "batch: 100"],
                                          150, 18000)

    def test_deep_in_windows_of_keys_decide_few_rows_again(self):
        self.assert_few_are_decided_again(['group_by_window: {key: "value * value % 13", window_size: 20}'], 1200, 22000)

    def test_deep_in_rows_of_batches_count_few_again(self):
        self.assert_few_are_decided_again(["batch: 7", "unbatch: {}", "batch: 100"], 250, 3000)

    def test_deep_in_buckets_decide_few_rows_again(self):
        self.assert_few_are_decided_again(
            ['map: {length: "value * 7919 % 1000"}',
             "bucket_by_sequence_length: {column: length, bucket_boundaries: [100, 300, 700], "
             "bucket_batch_sizes: [10, 20, 40, 80]}"], 700, 20000)

    def test_deep_in_batches_of_other_sizes_make_few_again(self):
        self.assert_few_are_decided_again(
            ['filter: "value % 3 != 1"', "batch: 7", "unbatch: {}", "batch: 5", "rebatch: 8"], 2200, 28000)

    def test_deep_in_datasets_that_are_drawn_from_draw_few_again(self):
        self.write_rows()
        first = f"[{', '.join('{' + stage + '}' for stage in NUMBERS)}, {{filter: \"value % 3 != 1\"}}]"
        second = f"[{', '.join('{' + stage + '}' for stage in NUMBERS)}]"
        file = self.pipeline([
            f"sample_from_datasets: {{datasets: [{first}, {second}], weights: [0.4, 0.6], seed: 5}}",
            "shuffle: {buffer_size: 50}", "repeat: 2", "batch: 20",
        ])  # fmt: skip
        self.assert_noted_order_goes_on(file, 2000, 40000)

    def write_numbers(self, dtype):
        head = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': (100,), }}"
        head += " " * (63 - (10 + len(head)) % 64) + "\n"
        (self.path / "numbers.npy").write_bytes(
            b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + struct.pack("<d", 1.5) * 100
        )

    def test_are_refused_where_a_file_gives_other_columns_by_now(self):
        file = self.pipeline(["from_tensor_slices: {value: {npy: numbers.npy}}", "shuffle: {buffer_size: 10}", "batch: 2"],
                             seed="")
        self.write_numbers("<i8")
        token = self.taken_after(file, 3)
        self.serve(file)
        self.write_numbers("<f8")
        last = self.lines(self.read("--place", token))[-1]
        self.assertIn("E_PLACE", last)
        self.assertIn("column 1 of stream 'train' is not as it was when the server started", last)

    def test_of_changed_files_are_refused_by_name(self):
        stages = [
            "csv: {filenames: [one.csv, two.csv], record_defaults: [int64], column_names: [value]}",
            "batch: 8",
        ]
        for name in ("one.csv", "two.csv"):
            (self.path / name).write_text("".join(f"{i}\n" for i in range(40)))
        file = self.pipeline(stages)
        token = self.taken_after(file, 2)
        (self.path / "two.csv").write_text("".join(f"{i}\n" for i in range(1, 41)))
        self.serve(file)
        lines = self.lines(self.read("--place", token))
        self.assertIn("E_PLACE", lines[-1])
        self.assertIn("two.csv changed", lines[-1])
        self.assertNotIn("one.csv", lines[-1])

    def test_of_changed_files_that_rows_name_are_refused_by_name(self):
        """Names in memory, however they come to a reader; one that no reader comes to may be missing."""
        readers = ("text_line: {}", 'text_line: {filenames: $value}', 'text_line: {filenames: $name}')
        for number, reader in enumerate(readers):
            names = [f"{part}-{number}.txt" for part in ("one", "two", "none")]
            for name in names[:2]:
                (self.path / name).write_text("".join(f"{i}\n" for i in range(40)))
            column = "name" if "$name" in reader else "value"
            file = self.pipeline([
                f"from_tensor_slices: {{{column}: [{', '.join(names)}]}}", "take: 2", "shuffle: {buffer_size: 2, seed: 1}",
                f"interleave: {{dataset: [{{{reader}}}], cycle_length: 2}}",
                "string_to_number: {out_type: int64}", "batch: 8",
            ])  # fmt: skip
            expected = self.peek(file)[0]
            token = self.taken_after(file, 2)
            server = self.serve(file)
            self.assertEqual(batches(self.lines(self.read("--place", token))), expected[2:])
            stop(server)
            (self.path / names[1]).write_text("".join(f"{i}\n" for i in range(1, 41)))
            server = self.serve(file)
            lines = self.lines(self.read("--place", token))
            self.assertIn("E_PLACE", lines[-1])
            self.assertIn(f"{names[1]} changed", lines[-1])
            self.assertNotIn(names[0], lines[-1])
            stop(server)

    def test_of_a_folder_with_other_files_are_refused_by_its_name(self):
        self.write_folder("all", 40)
        file = self.pipeline([
            "directory: {directory: all, extensions: [txt]}", "shuffle: {buffer_size: 30, seed: 2}",
            "select: value", "string_to_number: {out_type: int64}", "batch: 4",
        ])
        expected = self.peek(file)[0]
        token = self.taken_after(file, 3)
        new = self.path / "all" / "0" / "0000.txt"
        new.write_text("1")
        server = self.serve(file)
        refused = self.lines(self.read("--place", token))
        self.assertEqual(batches(refused), [])
        self.assertIn("all/ (its list of files) changed since the place was saved", self.log())
        stop(server)
        new.unlink()
        self.write_folder("elsewhere/all", 40)
        for root in (self.path, self.path / "elsewhere"):
            server = self.serve(file, "--root", str(root))
            self.assertEqual(batches(self.lines(self.read("--place", token))), expected[3:])
            stop(server)

    def write_folder(self, name, count):
        for row in range(count):
            path = self.path / name / str(row % 2) / f"{row:03}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(str(row))

    def test_a_file_that_is_listed_and_read_is_named_once(self):
        for name in ("one.txt", "two.txt"):
            (self.path / name).write_text("a\nb\n")
        file = self.pipeline(["text_line: {filenames: [one.txt, two.txt]}", "batch: 1"])
        token = self.taken_after(file, 1)
        (self.path / "two.txt").write_text("c\nd\ne\n")
        self.serve(file)
        last = self.lines(self.read("--place", token))[-1]
        self.assertEqual(last.count("two.txt"), 1, last)

    def test_hashes_of_their_files_are_kept_after_the_first_step(self):
        """Also by a server that is killed then, which does not write them where it ends."""
        for i in range(200):
            (self.path / f"part-{i}.txt").write_text(f"{i}\n")
        time.sleep(2.1)  # those of younger files are not
        server = self.serve(self.pipeline(["list_files: {file_pattern: 'part-*.txt', shuffle: false}",
                                           "flat_map: {dataset: [text_line]}", "batch: 8"]))
        self.lines(self.read("--batches", "1"))
        self.wait_until(lambda: list((self.path / "cache").glob("files-*.hashes")))
        server.kill()
        server.wait()

    def test_of_files_that_another_pattern_matches_go_on(self):
        def matched(pattern):
            return self.pipeline([f"list_files: {{file_pattern: '{pattern}', seed: 3}}",
                                  "interleave: {dataset: [text_line], cycle_length: 1}",
                                  "string_to_number: {out_type: int64}", "batch: 8"])

        for i in range(3):
            rows = range(40 * i, 40 * i + 40)
            (self.path / f"part-{i}.txt").write_text("".join(f"{row}\n" for row in rows))
        expected = self.peek(matched("part-*.txt"))[0]
        token = self.taken_after(matched("part-*.txt"), 2)
        (self.path / "part-3.txt").write_text("7\n")
        server = self.serve(matched("part-*.txt"))
        self.assertIn("with 3 files, and there are 4 now", self.lines(self.read("--place", token))[-1])
        stop(server)
        server = self.serve(matched("part-[0-2].txt"))
        self.assertEqual(batches(self.lines(self.read("--place", token))), expected[2:])
        stop(server)
        self.serve(matched("part-[13].txt"))
        self.assertIn("E_PLACE", self.lines(self.read("--place", token))[-1])

    def test_of_another_pipeline_are_refused(self):
        token = self.taken_after(self.pipeline(ROWS), 2)
        size = ROWS[-1].removeprefix("batch: ")
        for stages, seed, difference in (
            (ROWS[:-1] + ["batch: 21"], "seed: 1", f"batch_size {size} then, 21 now"),
            (ROWS[:-1], "seed: 1", "batch (line "),
            (ROWS, "seed: 2", "the file (line 1): seed 1 then, 2 now"),
        ):
            server = self.serve(self.pipeline(stages, seed=seed))
            lines = self.lines(self.read("--place", token))
            self.assertIn("E_PLACE", lines[-1])
            self.assertIn("another pipeline", lines[-1])
            self.assertIn(difference, lines[-1])
            stop(server)
        # Of which nobody has kept the words: another machine has another cache folder.
        self.environment["TUNDISH_CACHE"] = str(self.path / "cache2")
        self.serve(self.pipeline(ROWS[:-1] + ["batch: 21"]))
        self.assertIn("its stages, parameters or seeds differ", self.lines(self.read("--place", token))[-1])

    def test_of_before_and_after_a_cut_go_on_in_one_order(self):
        """That from before the next epoch's first batch does not say where the last was cut, which
        its order depends on. That of the other replica does."""
        file = self.pipeline(["range: 40", "shuffle: {buffer_size: 40}", "repeat: {}", "batch: 16"],
                             "{replicas: 2}", "{slots: 3}", seed="")
        server = self.serve(file)
        first = self.read("--restart-after", "7", "--places", "--batches", "10")
        other = self.read_paced("--restart-after", "8", "--batches", "9", replica=1)
        other.take(7)
        before = self.wait_for_line(first, "left ").split()[1]
        after = place(other.finish())
        expected = batches(self.lines(first))
        for order in (0, 1), (1, 0):
            with self.subTest(first=order[0]):
                stop(server)
                server = self.serve(file)
                wanted = [("--place", before, "--batches", "3"), ("--place", after, "--batches", "2")]
                readers = {}
                for replica in order:
                    readers[replica] = self.read(*wanted[replica], replica=replica)
                    self.wait_for_line(readers[replica], "first")
                self.assertEqual(batches(self.lines(readers[0])), expected)
                self.lines(readers[1])

    def assert_goes_on(self, stages, *counts, epochs=3):
        """From each of these steps as if undisturbed; its epochs' cache files are there by then."""
        file = self.pipeline(stages, deliver=f"{{epochs: {epochs}}}")
        expected = self.peek(file, "--epochs", str(epochs))[0]
        for kept in self.path.glob("kept*"):
            kept.unlink()
        for count in counts:
            token = self.taken_after(file, count)
            server = self.serve(file)
            found = batches(self.lines(self.read("--place", token)))
            self.assertEqual(found, expected[count:], f"after {count} steps")
            stop(server)

    def test_behind_a_cache_of_batches_in_a_file_go_on(self):
        stages = [
            "range: {stop: 100}",
            "shuffle: {buffer_size: 30, seed: 4}",
            "batch: 7",
            "cache: {filename: kept}",
            "shuffle: {buffer_size: 5, seed: 5}",
        ]
        self.assert_goes_on(stages, 6, 15, 22, 40)

    def test_behind_a_cache_in_a_file_inside_a_function_go_on(self):
        inner = (
            "[{range: [0, $value]}, {shuffle: {buffer_size: 9, seed: 2}}, {cache: {filename: kept}}]"
        )
        stages = [
            "range: {start: 11, stop: 15}",
            f"interleave: {{dataset: {inner}, cycle_length: 2, block_length: 3}}",
            "shuffle: {buffer_size: 10, seed: 3}",
            "batch: 4",
        ]
        self.assert_goes_on(stages, 3, 14, 29)

    def test_among_columns_of_other_lengths_go_on(self):
        rows = ["range: {stop: 60}", "shuffle: {buffer_size: 30, seed: 4}", "batch: 7"]
        shorter = 'map: {n: value, value: "value[::3]"}'
        kept = "cache: {filename: kept}"
        for stages in (
            [*rows, shorter],
            [*rows, shorter, kept, "shuffle: {buffer_size: 5, seed: 5}"],
            [*rows, shorter, "drop: n", "rebatch: 5"],
            [*rows, shorter, "drop: n", kept, "rebatch: [5, 1]"],
        ):
            file = self.pipeline(stages, "{replicas: 2}", "{epochs: 2}")
            expected = self.peek(file, "--epochs", "2")
            for name in self.path.glob("kept*"):
                name.unlink()
            for count in (2, 11):
                with self.subTest(stages=stages, count=count):
                    server = self.serve(file)
                    readers = [self.read("--batches", str(count), replica=r) for r in range(2)]
                    begun = [self.lines(reader) for reader in readers]
                    stop(server)
                    server = self.serve(file)
                    token = place(begun[0])
                    readers = [self.read("--place", token, replica=r) for r in range(2)]
                    for replica, reader in enumerate(readers):
                        found = batches(begun[replica]) + batches(self.lines(reader))
                        self.assertEqual(found, expected[replica])
                    stop(server)


if __name__ == "__main__":
    unittest.main()
