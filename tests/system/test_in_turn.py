"""One thread that reads several replicas in turn, and waits for each as long as it takes.

Some deaths come before each of its readers has had a batch, while the others hold theirs.
"""

import json
import os
import unittest

from rig import Rig

READ_ALL = os.environ["TUNDISH_READ_ALL"]


class InTurn(Rig):
    def survives(self, replicas, groups, kills, slots, seed):
        """Kill the server at these batches, and begin another: {reader: its batches}."""
        file = self.pipeline(
            ["range: 2400", "shuffle: {buffer_size: 50}", "batch: 4"],
            f"{{replicas: {replicas}, groups: {groups}}}", f"{{epochs: 2, slots: {slots}}}", seed)
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
            self.assertEqual(statuses[name][-1], "END_OF_STREAM")
            self.assertLessEqual(set(statuses[name][:-1]), {"E_SERVER_GONE"})
        return file, given

    def goes_on(self, replicas, groups, kills, slots=4):
        file, given = self.survives(replicas, groups, kills, slots, "seed: 1")
        expected = self.peek(file, "--epochs", "2")
        for name, batches in given.items():
            self.assertEqual(batches, expected[int(name[-1])], name)

    def test_goes_on_where_it_stood_whenever_the_server_is_killed(self):
        self.goes_on(3, 1, {1, 2, 700, 1801, 2900})

    def test_goes_on_with_as_few_slots_as_there_may_be(self):
        self.goes_on(2, 1, {1, 400, 1201, 1500}, slots=3)

    def test_goes_on_when_some_have_had_nothing_from_several_servers(self):
        self.goes_on(3, 1, {1, 2, 3, 7, 277})

    def test_goes_on_with_the_same_draws_when_some_have_had_nothing(self):
        """Each server draws a root seed of its own; the readers carry the first one's over."""
        _, given = self.survives(3, 1, {1, 2, 5}, 4, "")
        for epoch in range(2):
            rows = [row for batches in given.values() for at, _, values in batches if at == epoch
                    for row in values]
            self.assertEqual(sorted(rows), list(range(2400)))

    def test_goes_on_with_several_groups(self):
        self.goes_on(2, 2, {1, 3, 1500, 2401, 3000})


if __name__ == "__main__":
    unittest.main()
