"""The benchmark's own arithmetic: passes, medians, ratios and the comparison of outputs."""

import ast
import contextlib
import io
import json
import mmap
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "bench"), str(TESTS / "data")]

from harness import __main__ as bench  # noqa: E402
from harness import cells, compression, environments, gpu, growth, markdown, measure, processes, python  # noqa: E402
from harness import report, subjects  # noqa: E402

DIGEST = {"ordered": "1", "bag": "2", "rows": 3, "dense_sum": 10.0, "label_sum": 1.0}


def passes_at(*rates):
    return measure.Measurement(
        passes=[measure.Pass(1000, 8000, 1000 / rate, 0.5, 0.1, 0.0) for rate in rates]
    )


def program_that_prints(*lines):
    script = "".join(f"echo '{line}'\n" for line in lines) + "sleep 1000"
    return processes.Program(["sh", "-c", script])


class Growth(unittest.TestCase):
    SIZES = (10, 100, 1000)

    def test_the_exponent_is_that_of_the_power(self):
        for power in (1, 2, 3):
            values = [0.5 * size**power for size in self.SIZES]
            self.assertAlmostEqual(growth.exponent(self.SIZES, values, 0.001), power)

    def test_what_is_only_noise_does_not_grow(self):
        self.assertEqual(growth.exponent(self.SIZES, [0.0, -0.5, 0.9], 1), 0)

    def test_noise_does_not_hide_growth(self):
        self.assertAlmostEqual(growth.exponent(self.SIZES, [0.9, 10, 1000], 1), 2)
        self.assertAlmostEqual(growth.exponent(self.SIZES, [0.1, -1, 1000], 10), 2)


class Passes(unittest.TestCase):
    def test_the_first_pass_is_the_check_and_not_timed(self):
        check = '{"rows": 5, "bytes": 1, "seconds": 1, "digest": {"bag": "x"}, "version": "v 1"}'
        timed = '{"rows": 5, "bytes": 40, "seconds": 0.5}'
        with program_that_prints(check, *[timed] * 9) as program:
            taken = measure.take_passes(program, [program.pid], 3)
        self.assertEqual((taken.version, taken.digest), ("v 1", {"bag": "x"}))
        self.assertEqual([p.seconds for p in taken.passes], [0.5] * 3)

    def test_quick_passes_are_joined_until_they_took_long_enough(self):
        with program_that_prints(*['{"rows": 5, "bytes": 40, "seconds": 0.5}'] * 3) as program:
            one = measure.take_pass(program, [program.pid])
            with mock.patch.object(measure.time, "monotonic", side_effect=[0, 0.1, 0.3, 0.4]):
                joined = measure.take_pass(program, [program.pid], 0.3)
        self.assertEqual((one.rows, one.bytes, one.seconds), (5, 40, 0.5))
        self.assertEqual((joined.rows, joined.bytes, joined.seconds), (10, 80, 1.0))

    def test_a_program_that_says_something_else_has_failed(self):
        with program_that_prints("oops") as program:
            with self.assertRaisesRegex(measure.Failure, "oops"):
                measure.take_passes(program, [program.pid], 3)

    def test_a_program_that_ends_is_blamed_with_its_last_words(self):
        script = "echo first >&2; echo the disk is full >&2"
        with processes.Program(["sh", "-c", script], name="peer") as program:
            with self.assertRaisesRegex(measure.Failure, "^peer .*: the disk is full$"):
                measure.next_line(program, 600)

    def test_the_cost_of_a_tree_includes_children(self):
        command = ["sh", "-c", "(i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done); echo; sleep 1000"]
        with processes.Program(command) as program:
            program.read_line(600)
            self.assertGreater(processes.cpu_s([program.pid]), 0.0)
            self.assertGreater(processes.pss_mb([program.pid]), 0.0)


class Turns(unittest.TestCase):
    def test_a_program_goes_on_when_it_is_asked(self):
        script = "while read line; do echo went on; done"
        with processes.Program(["sh", "-c", script], stdin=subprocess.PIPE) as program:
            program.ask()
            self.assertEqual(program.read_line(600), "went on\n")

    def test_the_quietest_are_kept_and_no_more_taken_than_are_needed(self):
        loud_and_quiet = iter([0.5, 0.0, 0.3, 0.01, 0.02])
        kept = measure.quietest(lambda: next(loud_and_quiet), 2, lambda share: share)
        self.assertEqual(kept, [0.0, 0.01])
        self.assertEqual(next(loud_and_quiet), 0.02)
        self.assertEqual(measure.quietest(lambda: 0.5, 2, lambda share: share), [0.5, 0.5])

    def test_ratios_are_of_neighbours(self):
        slow_then_fast, twice_as_fast = passes_at(10, 1000).passes, passes_at(20, 2000).passes
        ratios = python.ratios_of(twice_as_fast, slow_then_fast)
        self.assertEqual(ratios, {"median": 2.0, "min": 2.0, "max": 2.0})


class Compression(unittest.TestCase):
    def test_figures_are_ratios_to_the_first(self):
        stream = {
            "lanes": [{"segments_bytes": 3000}, {"segments_bytes": 1000}],
            "compression": [{"how": "columns as they are", "why": "as the file says"}],
        }
        first = compression.line_of("text", "none", passes_at(1000, 2000, 3000), stream)
        self.assertEqual((first["shm_bytes"], first["rows_per_s"]), (4000, 2000))
        self.assertAlmostEqual(first["server_cpu_s_per_m_rows"], 400)
        stream["lanes"] = [{"segments_bytes": 1000}]
        second = compression.line_of("text", "zstd", passes_at(500), stream)
        lines = compression.add_ratios([first, second])
        self.assertEqual([line["to_none"]["shm_bytes"] for line in lines], [1, 0.25])
        self.assertEqual(lines[1]["to_none"]["rows_per_s"], 0.25)
        with contextlib.redirect_stdout(io.StringIO()) as said:
            compression.print_table(lines)
        self.assertIn("| text | zstd | 0.25 | 1.00 | 1.00 (100) | 0.25 |", said.getvalue())

    def test_what_is_refused_has_no_figures(self):
        line = compression.refusal_of("jpeg", "auto, half the room", "no room")
        self.assertEqual(compression.add_ratios([line]), [line])
        with contextlib.redirect_stdout(io.StringIO()) as said:
            compression.print_table([line])
        self.assertIn("| jpeg | auto, half the room | refused |", said.getvalue())


class Gpus(unittest.TestCase):
    def test_a_machine_without_one_is_told_so_and_nothing_is_started(self):
        with mock.patch.object(gpu, "look", return_value="there is no NVIDIA driver"):
            with contextlib.redirect_stdout(io.StringIO()) as said:
                gpu.measure(None)
        self.assertEqual(said.getvalue().split(), "gpu not measured: there is no NVIDIA driver".split())

    def test_figures_are_ratios_to_the_links_peaks(self):
        peaks = {"pinned_bytes_per_s": 20.0, "pageable_bytes_per_s": 5.0, "memcpy_bytes_per_s": 10.0}
        line = gpu.add_ratios({"bytes_per_s": 10.0, **peaks})
        self.assertEqual(line["ratio_to"], {"pinned": 0.5, "pageable": 2.0, "memcpy": 1.0})
        line = gpu.add_ratios({"ready_us": 130.0, "copy_us": 100.0})
        self.assertEqual(line["ready_to_copy"], 1.3)
        line = gpu.add_ratios({"bytes_per_s": 1.0, **peaks, "kernel": {"bytes_per_s": 7.0, "copy_bytes_per_s": 10.0}})
        self.assertEqual(line["kernel_to_copy"], 0.7)
        failed = {"error": "it ended"}
        self.assertEqual(gpu.add_ratios(failed), failed)

    def test_a_server_that_has_no_stream_yet_is_asked_again(self):
        tundish, trainer = mock.Mock(), mock.Mock()
        trainer.poll.return_value = None
        looks = [{"devices": [{"mode": "copy", "why": "as it is", "copy_seconds": copied}]} for copied in (2.0, 2.4)]
        tundish.stream.side_effect = [IndexError, subprocess.CalledProcessError(3, "status"), *looks]
        with mock.patch.object(gpu.time, "sleep"), mock.patch.object(gpu.time, "monotonic", side_effect=[0, *range(9)]):
            found = gpu.way_of(tundish, trainer, "socket")
        self.assertEqual((found["mode"], found["why"], tundish.stream.call_count), ("copy", "as it is", 4))
        self.assertAlmostEqual(found["link_busy"], 0.2)  # 0.4 s of copies in 2 s

    def test_pixels_are_an_array_of_numpys(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(gpu, "IMAGES", 2):
            content = (gpu.pixels(Path(folder)) / "pixels.npy").read_bytes()
        end = 10 + int.from_bytes(content[8:10], "little")
        self.assertEqual((content[:8], end % 64), (b"\x93NUMPY\x01\x00", 0))
        header = ast.literal_eval(content[10:end].decode())
        self.assertEqual(header, {"descr": "|u1", "fortran_order": False, "shape": (2, 224, 224, 3)})
        self.assertEqual(len(content) - end, 2 * 224 * 224 * 3)

    def test_lines_of_the_stand_in_say_so(self):
        with mock.patch.object(gpu, "STAND_IN", True):
            with contextlib.redirect_stdout(io.StringIO()) as said:
                gpu.show({"cell": "gpu-images", "peer": "tundish"}, as_json=True)
        self.assertIs(json.loads(said.getvalue())["stand_in"], True)


class Starts(unittest.TestCase):
    def test_a_cold_one_finds_all_but_what_it_must_not(self):
        with tempfile.TemporaryDirectory() as folder:
            cache = Path(folder)
            for name in ("records-1.index", "records-2.index", "vocab-1"):
                (cache / name).touch()
            subjects.forget(cache, ("records-",))
            self.assertEqual([path.name for path in cache.iterdir()], ["vocab-1"])
            subjects.forget(cache, ())
            self.assertEqual(len(list(cache.iterdir())), 1)
            subjects.forget(cache / "nowhere", ("",))

    def test_memory_is_told_by_what_it_is_for(self):
        with open(f"/dev/shm/test-bench-{os.getpid()}", "w+b") as file:
            os.unlink(file.name)
            file.truncate(8 << 20)
            with mmap.mmap(file.fileno(), 8 << 20) as segment:
                segment.write(bytes(8 << 20))
                memory = processes.memory_mb(os.getpid())
        self.assertAlmostEqual(memory["slots"], 8.0, delta=0.1)
        self.assertEqual(memory["tables"], 0.0)
        self.assertGreater(memory["other"], 1.0)


class Reports(unittest.TestCase):
    def line(self, measurement, name="tundish"):
        return report.line_of(cells.choose(["criteo"])[0], name, measurement)

    def test_figures_are_medians_with_their_ends(self):
        line = self.line(passes_at(100, 400, 200))
        self.assertEqual(line["rows_per_s"], {"median": 200.0, "min": 100.0, "max": 400.0})
        self.assertEqual(line["cpu_s_per_million_rows"]["median"], 500.0)

    def test_ratios_are_to_the_best_peer_and_to_the_limit(self):
        line = self.line(passes_at(300))
        peers = [self.line(passes_at(100), "slow"), self.line(passes_at(150), "fast")]
        report.add_ratios(line, peers, self.line(passes_at(400), "limit"))
        self.assertEqual((line["ratio_to_best_peer"], line["ratio_to_limit"]), (2.0, 0.75))

    def test_who_did_not_run_or_did_something_else_is_no_peer(self):
        line = self.line(passes_at(300))
        wrong = dict(self.line(passes_at(900), "wrong"), differs=["rows"])
        failed = report.line_of_failure(cells.choose(["criteo"])[0], "failed", "no room")
        report.add_ratios(line, [wrong, failed, self.line(passes_at(100), "slow")], None)
        self.assertEqual(line["ratio_to_best_peer"], 3.0)
        self.assertNotIn("ratio_to_limit", line)

    def test_more_threads_stand_beside_the_fewest(self):
        first = report.line_of_threads(self.line(passes_at(500)), 1, {})
        line = report.line_of_threads(self.line(passes_at(1000)), 2, first)
        self.assertEqual((first["threads"], first["busy_cores"], first["busy_cores_of_trainer"]), (1, 0.2, 0.05))
        self.assertEqual((line["threads"], line["busy_cores"], line["ratio_to_first"]), (2, 0.4, 2.0))
        failed = report.line_of_failure(cells.choose(["criteo"])[0], "tundish", "no room")
        self.assertNotIn("ratio_to_first", report.line_of_threads(self.line(passes_at(9)), 4, failed))

    def test_a_quicker_start_is_a_higher_ratio(self):
        line, peer = (self.line(measure.Measurement(start_s=[s])) for s in (0.5, 2.0))
        report.add_ratios(line, [peer], None)
        self.assertEqual(line["ratio_to_best_peer"], 4.0)

    def test_outputs_are_compared_but_for_their_order_and_rounding(self):
        same = {"digest": dict(DIGEST, ordered="9", dense_sum=10.000001)}
        self.assertEqual(report.differences({"digest": DIGEST}, same), [])
        for name, value in (("bag", "9"), ("rows", 4), ("label_sum", 2.0), ("dense_sum", 10.1)):
            other = {"digest": dict(DIGEST, **{name: value})}
            self.assertEqual(report.differences({"digest": DIGEST}, other), [name])


    def test_pixels_that_are_only_near_are_compared_by_their_mean(self):
        own = {"digest": dict(DIGEST, mean_pixel=100.0)}
        for mean, rows, wrong in ((100.9, 3, []), (101.1, 3, ["mean_pixel"]), (100.0, 4, ["rows"])):
            peer = {"near": True, "digest": dict(DIGEST, bag="9", rows=rows, mean_pixel=mean)}
            self.assertEqual(report.differences(own, peer), wrong)
            self.assertEqual(report.differences(peer, own), wrong)

    def test_what_others_draw_is_compared_by_its_sum(self):
        line = {"digest": DIGEST}
        for total, found in ((10.1, []), (10.3, ["dense_sum"])):
            other = {"digest": dict(DIGEST, bag="9", dense_sum=total), "near": True}
            self.assertEqual(report.differences(line, other), found)

    def test_the_best_peer_with_the_same_pixels_has_a_ratio_of_its_own(self):
        line = self.line(passes_at(300))
        near = dict(self.line(passes_at(200), "near"), near=True)
        peers = [near, self.line(passes_at(100), "exact")]
        report.add_ratios(line, peers, None)
        self.assertEqual((line["ratio_to_best_peer"], line["ratio_to_best_exact_peer"]), (1.5, 3.0))
        report.add_ratios(exact := self.line(passes_at(300)), peers[1:], None)
        self.assertNotIn("ratio_to_best_exact_peer", exact)


class Tables(unittest.TestCase):
    def test_a_cell_is_a_table_with_ratios(self):
        cell = cells.choose(["criteo"])[0]
        own = report.line_of(cell, "tundish", passes_at(300, 200, 400))
        peer = report.line_of(cell, "slow", passes_at(100))
        failed = report.line_of_failure(cell, "failed", "no room")
        written = io.StringIO()
        with contextlib.redirect_stdout(written):
            markdown.print_cell("criteo", [peer, failed, own])
        lines = written.getvalue().splitlines()
        self.assertTrue(lines[4].startswith("| tundish, 3 passes | 300 (200 .. 400) |"), lines)
        self.assertTrue(lines[5].startswith("| slow, 1 passes | 100 (100 .. 100) |"), lines)
        self.assertTrue(lines[5].endswith("| 3.00 |"), lines)
        self.assertTrue(lines[6].startswith("| failed: did not run: no room |"), lines)

    def test_single_figures_make_no_table(self):
        own = report.line_of(cells.choose(["criteo"])[0], "tundish", passes_at(300))
        self.assertTrue(markdown.has_table([own, {"cell": "criteo", "peer": "slow"}]))
        self.assertFalse(markdown.has_table([{"cell": "analyze", "rows_per_s": 1134180}]))
        self.assertFalse(markdown.has_table([{"cell": "python", "what": "import"}]))


class Cells(unittest.TestCase):
    def test_sizes_of_one_thing_are_chosen_together(self):
        names = [cell.name for cell in cells.choose(["transport", "text"])]
        self.assertEqual(names[0], "text")
        self.assertEqual(len(names), 5)
        self.assertEqual(len(cells.choose(["transport-4KiB"])), 1)

    def test_cells_of_python_are_chosen_by_framework_too(self):
        torch = {cell.name for cell in cells.choose(["python-torch"])}
        self.assertIn("python-torch-jpeg", torch)
        self.assertEqual({cell.framework for cell in cells.choose(["python-torch"])}, {"torch"})
        self.assertLess(torch, {cell.name for cell in cells.choose(["python"])})
        self.assertNotIn("criteo", {cell.name for cell in cells.choose(["python"])})
        self.assertIsNone(cells.choose(["criteo"])[0].framework)

    def test_with_numbers_of_threads_an_area_is_its_cells_that_have_passes(self):
        def names(*words, threads=True):
            return [getattr(cell, "name", cell) for cell in bench._choose(words, threads)]

        self.assertEqual(names("criteo", "columns"), ["criteo", "columns"])
        self.assertEqual(names("criteo", "criteo-cold"), ["criteo", "criteo-cold"])
        self.assertEqual(names("criteo", threads=False), ["criteo", "criteo-cold"])

    def test_where_python_is_named_nothing_is_installed(self):
        with mock.patch.dict(os.environ, PYTHON="/its/python"), mock.patch.object(environments, "_run") as run:
            found = environments.Environments(Path("/nowhere")).python_for("polars")
        self.assertEqual((found, run.call_args), ("/its/python", None))

    def test_an_unknown_cell_is_named(self):
        with self.assertRaisesRegex(KeyError, "nothing"):
            cells.choose(["nothing"])


if __name__ == "__main__":
    unittest.main()
