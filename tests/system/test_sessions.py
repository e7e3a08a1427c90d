"""A session for each worker: the whole stream, at its own pace."""

import os
import signal
import unittest

from rig import READER, Rig, batches, place, stop

STEPS = 63
SESSIONS_MAX = 64  # that a server makes for its trainers


def stages(shuffle):
    return ["range: 1000", f"shuffle: {{{shuffle}}}", "batch: 16"]


class Sessions(Rig):
    distribute = "{from_function: true}"

    def worker(self, name, *options):
        return self.start([READER, *options], TUNDISH_SESSION=name)

    def test_are_iterators_of_their_own_over_all_of_the_data(self):
        file = self.pipeline(stages("buffer_size: 1000"), self.distribute, seed="")
        self.serve(file)
        slow = self.worker("worker-0", "--batches", "2", "--hold")
        self.wait_for_line(slow, "place ")
        orders = [
            [value for _, _, values in batches(lines) for value in values]
            for lines in self.all_lines([self.worker("worker-1"), self.worker("worker-2")])
        ]
        for order in orders:
            self.assertEqual(sorted(order), list(range(1000)))
        self.assertNotEqual(*orders)

    def test_have_the_same_order_where_a_seed_is_given(self):
        file = self.pipeline(stages("buffer_size: 1000, seed: 3"), self.distribute, seed="")
        self.serve(file)
        orders = [
            batches(lines)
            for lines in self.all_lines([self.worker("worker-1"), self.worker("worker-2")])
        ]
        self.assertEqual(*orders)

    def test_go_on_at_their_places_on_another_server(self):
        file = self.pipeline(stages("buffer_size: 100"), self.distribute, seed="")
        server = self.serve(file)
        whole = batches(self.lines(self.worker("a")))
        token = place(self.lines(self.worker("b", "--batches", "20")))
        b_first = 20
        stop(server, signal.SIGKILL)
        self.serve(file)
        rest = batches(self.lines(self.worker("b", "--place", token)))
        self.assertEqual([step for _, step, _ in rest], list(range(b_first, STEPS)))
        again = batches(self.lines(self.worker("a2", "--place", token)))
        self.assertEqual(again, rest)
        self.assertNotEqual(again, whole[b_first:])

    def test_end_when_nobody_reads_them(self):
        file = self.pipeline(
            stages("buffer_size: 100"), self.distribute, "{epochs: 1, rejoin: 100ms}"
        )
        self.serve(file)
        self.lines(self.worker("short", "--batches", "3"))
        self.wait_for_log("session short has no readers left")
        self.assertEqual(len(batches(self.lines(self.worker("short")))), STEPS)

    def test_are_not_kept_for_those_who_are_refused(self):
        file = self.pipeline(stages("buffer_size: 100"), self.distribute, "{epochs: 1, rejoin: 0s}")
        server = self.serve(file)
        threads = len(os.listdir(f"/proc/{server.pid}/task"))
        token = place(self.lines(self.worker("first", "--batches", "1")))
        for i in range(SESSIONS_MAX + 1):
            refused = self.start([READER], TUNDISH_SESSION=f"w{i}", TUNDISH_REPLICA="7")
            self.assertIn("there is no replica 7", self.lines(refused)[-1])
            self.assertIn("E_PLACE", self.lines(self.worker("first", "--place", token[:-4]))[-1])
        self.assertEqual(len(batches(self.lines(self.worker("last")))), STEPS)
        self.wait_for_threads(server, threads)

    def test_outlive_their_server(self):
        file = self.pipeline(stages("buffer_size: 100"), self.distribute, seed="")
        server = self.serve(file)
        workers = [self.worker(name, "--survive", "--delay-ms", "2") for name in "ab"]
        first = self.wait_for_line(workers[0], "batch 0 9 ")
        stop(server, signal.SIGKILL)
        self.serve(file)
        lines = self.all_lines(workers)
        self.assertEqual([step for _, step, _ in batches(lines[0])], list(range(10, STEPS)))
        rows = sorted(value for _, _, values in batches(lines[1]) for value in values)
        self.assertEqual(rows, list(range(1000)))
        self.assertTrue(first)


class ManyStreams(Rig):
    """Of which nobody reads most."""

    COUNT = 9

    def file_of_streams(self):
        file = self.path / "many.yaml"
        stream = """  s{0}:
    dataset:
      - range: [{0}, 40000]
      - shuffle: {{buffer_size: 100, seed: 1}}
      - batch: 32
    deliver: {{epochs: 1}}
"""
        file.write_text("streams:\n" + "".join(stream.format(i) for i in range(self.COUNT)))
        return str(file)

    def reader(self, number, *options):
        return self.start([READER, *options], TUNDISH_STREAM=f"s{number}")

    def dealing_in(self, server):
        tasks = os.listdir(f"/proc/{server.pid}/task")
        names = [open(f"/proc/{server.pid}/task/{task}/comm").read().strip() for task in tasks]
        return names.count("deal")

    def test_have_threads_once_a_trainer_is_there(self):
        file = self.file_of_streams()
        server = self.serve(file)
        self.assertEqual(self.dealing_in(server), 0)
        reader = self.reader(3, "--batches", "2", "--hold")
        self.wait_for_line(reader, "place ")
        self.assertEqual(self.dealing_in(server), 1)

    def test_are_the_same_and_go_on_at_places(self):
        file = self.file_of_streams()
        server = self.serve(file)
        whole = {i: batches(self.lines(self.reader(i))) for i in (0, 5)}
        for i, one in whole.items():
            rows = sorted(value for _, _, values in one for value in values)
            self.assertEqual(rows, list(range(i, 40000)))
        token = place(self.lines(self.reader(8, "--batches", "20")))
        stop(server)
        self.serve(file)
        rest = batches(self.lines(self.reader(8, "--place", token)))
        self.assertEqual([step for _, step, _ in rest], list(range(20, 1250)))
        self.assertEqual(whole[5], batches(self.lines(self.reader(5))))

    def test_end_with_the_server(self):
        server = self.serve(self.file_of_streams())
        self.lines(self.reader(1))
        stop(server)
        self.assertEqual(server.returncode, 0)


if __name__ == "__main__":
    unittest.main()
