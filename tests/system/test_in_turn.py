"""One thread that reads several replicas in turn, and waits for each as long as it takes.

The first death comes when each of its readers has had a batch: before that a reader has no place, and the
server that comes next cannot know of the batches that the others hold already.
"""

import json
import os
import unittest

from rig import Rig

READ_ALL = os.environ["TUNDISH_READ_ALL"]


class InTurn(Rig):
    def goes_on(self, replicas, groups, kills, slots=4):
        """Kill the server at these batches, and begin another: each reader has every batch once, and
        says where it stands."""
        file = self.pipeline(
            ["range: 2400", "shuffle: {buffer_size: 50}", "batch: 4"],
            f"{{replicas: {replicas}, groups: {groups}}}", f"{{epochs: 2, slots: {slots}}}")
        expected = self.peek(file, "--epochs", "2")
        server = self.serve(file)
        names = [f"{group}:{replica}" for group in range(groups) for replica in range(replicas)]
        reader = self.start([READ_ALL, "--in-turn", "--survive", *names])
        given, statuses, count = {name: [] for name in names}, {name: [] for name in names}, 0
        for line in reader.stdout:
            kind, name, *words = json.loads(line)
            if kind == "batch":
                epoch, step, columns = words[:3]
                given[name].append((epoch, step, columns["value"]["values"]))
                count += 1
            elif kind == "status":
                statuses[name].append(words[0])
            if count in kills:
                kills = kills - {count}
                server.kill()
                server.wait()
                server = self.serve(file)
        self.assertEqual(reader.wait(), 0)
        self.assertEqual(kills, set())
        for name in names:
            self.assertEqual(given[name], expected[int(name[-1])], name)
            self.assertEqual(statuses[name][-1], "END_OF_STREAM")
            self.assertLessEqual(set(statuses[name][:-1]), {"E_SERVER_GONE"})

    def test_goes_on_where_it_stood_whenever_the_server_is_killed(self):
        self.goes_on(3, 1, {3, 700, 1801, 2900})

    def test_goes_on_with_as_few_slots_as_there_may_be(self):
        self.goes_on(2, 1, {2, 400, 1201, 1500}, slots=3)

    def test_goes_on_with_several_groups(self):
        self.goes_on(2, 2, {4, 1500, 2401, 3000})


if __name__ == "__main__":
    unittest.main()
