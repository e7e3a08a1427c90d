"""A server that dies when the lane of one replica shows a step, and that of the other does not yet."""

import unittest
from pathlib import Path

import rig

STEPS = 10
STAGES = [f"range: {STEPS * 16}", "shuffle: {buffer_size: 50}", "batch: 16"]
LAST, END, END_OF_STREAM = STEPS - 1, STEPS, STEPS + 1  # positions in the lane


def is_stopped(process):
    return Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T"


class HalfShown(rig.Rig):
    """The first replicas had all they wanted from its memory, and have left. The second get the same
    from its successor, which nobody can tell that the first need nothing."""

    def show_until(self, position, groups, taken):
        """The first lane shows that position, and the second does not. All had so many batches."""
        distribute = f"{{replicas: 2, groups: {len(groups)}}}"
        self.file = self.pipeline(STAGES, distribute, "{epochs: 1, slots: 4, rejoin: 600s}")
        # One thread shows each step to both before the next: two could show the first lane two at once.
        self.server = self.serve_until(position + 1, self.file, "--threads", "1")
        readers = [[self.read_paced("--survive", replica=replica, group=group) for group in groups]
                   for replica in range(2)]  # fmt: skip
        for _ in range(taken):
            for reader in readers[0] + readers[1]:
                reader.take()
        self.wait_until(lambda: is_stopped(self.server))
        return readers

    def follow_server(self, readers):
        """These have had all that the dead one shows them."""
        self.server.kill()
        self.server.wait()
        self.serve(self.file)
        for reader in readers:
            self.assertIn("E_SERVER_GONE", self.answer(reader))

    def answer(self, reader):
        reader.ask()
        return reader.line()

    def leave(self, reader):
        reader.process.stdin.close()
        self.assertEqual(reader.process.wait(), 0)

    def assert_all_came(self, readers):
        for replica, expected in self.peek(self.file).items():
            for reader in readers[replica]:
                self.assertEqual(rig.batches(reader.seen), expected)

    def assert_end_of_stream_comes(self, groups):
        first, second = readers = self.show_until(END_OF_STREAM, groups, STEPS)
        for reader in first:
            self.assertEqual(reader.finish()[-1], "end_of_stream")
        for reader in second:
            self.assertEqual(self.answer(reader), "end")
        self.follow_server(second)
        for reader in second:
            self.assertEqual(reader.finish()[-1], "end_of_stream")
        self.assert_all_came(readers)

    def test_the_end_of_the_stream_comes(self):
        self.assert_end_of_stream_comes(["a"])

    def test_the_end_of_the_stream_comes_to_groups(self):
        self.assert_end_of_stream_comes(["a", "b"])

    def test_the_end_of_the_last_epoch_comes(self):
        """Many a trainer knows how many epochs there are, and asks for nothing after them."""
        first, second = readers = self.show_until(END, ["a", "b"], STEPS)
        for reader in first:
            self.assertEqual(self.answer(reader), "end")
            self.leave(reader)
        self.follow_server(second)
        for reader in second:
            self.assertEqual(self.answer(reader), "end")
            self.leave(reader)
        self.assert_all_came(readers)

    def test_the_last_batch_comes(self):
        """Others count steps."""
        first, second = readers = self.show_until(LAST, ["a", "b"], STEPS - 1)
        for reader in first:
            reader.take()
            self.leave(reader)
        self.follow_server(second)
        for reader in second:
            reader.take()
            self.leave(reader)
        self.assert_all_came(readers)


if __name__ == "__main__":
    unittest.main()
