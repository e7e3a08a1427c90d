"""Where a job runs: by the command line, by TF_CONFIG, by Slurm's variables."""

import json
import os
import unittest
from unittest import mock

import program  # noqa: F401

from launch import slurm, tf_config
from launch.options import helper_command, parse_nodes

CLUSTER = {"chief": ["a:1"], "worker": ["a:2", "[::1]:3", "b:4"], "ps": ["c:5"]}


def variables(**names):
    return mock.patch.dict(os.environ, names, clear=True)


class Nodes(unittest.TestCase):
    def test_are_hosts_with_as_many_trainers_each(self):
        self.assertEqual(parse_nodes("a:4,b:4"), (("a", "b"), 4))
        self.assertEqual(parse_nodes("a,b"), (("a", "b"), None))
        self.assertEqual(parse_nodes("2"), (("localhost", "localhost"), None))

    def test_that_differ_or_lack_a_host_are_refused(self):
        for text in ("a:1,b:2", "a:x", ":3", "a:2,b"):
            with self.subTest(text=text), self.assertRaises(ValueError):
                parse_nodes(text)


class Helpers(unittest.TestCase):
    def test_find_the_files_that_servers_find(self):
        given = ["--root", "/data", "--threads", "4", "--cache=/c", "--analysis", "/a"]
        self.assertEqual(helper_command("t", "f.yaml", given),
                         ("t", "helper", "f.yaml", "--ready-fd", "1", "--root", "/data", "--cache", "/c",
                          "--analysis", "/a"))


class Clusters(unittest.TestCase):
    def test_have_a_task_with_input_for_chief_and_workers(self):
        task = {"type": "worker", "index": "2"}
        with variables(TF_CONFIG=json.dumps({"cluster": CLUSTER, "task": task})):
            tasks, role = tf_config.tf_tasks()
        self.assertEqual(tasks, (("chief", 0), ("worker", 0), ("worker", 1), ("worker", 2)))
        self.assertEqual(role, ("worker", 2))

    def test_name_what_is_wrong_with_them(self):
        for config, words in (
            ("{", "is not JSON"),
            ('["a"]', "is not a cluster and a task"),
            (json.dumps({"cluster": {"worker": "a:1"}, "task": {"type": "worker"}}), "not a list of HOST:PORT"),
            (json.dumps({"cluster": CLUSTER, "task": {"type": "cook", "index": 0}}), "type is one of"),
            (json.dumps({"cluster": CLUSTER, "task": {"type": "chief", "index": "x"}}), "a number from 0"),
            (json.dumps({"cluster": CLUSTER, "task": {"type": "chief", "index": 1}}), "the cluster has 1 chief,"),
        ):
            with self.subTest(config=config), variables(TF_CONFIG=config):
                with self.assertRaisesRegex(ValueError, words):
                    tf_config.tf_tasks()

    def test_share_a_node_where_every_host_has_as_many_tasks(self):
        tasks = [("worker", index) for index in range(4)]
        together = [("a", tasks[:2]), ("b", tasks[2:])]
        apart = [(host, [task]) for host, task in zip("aabb", tasks)]
        self.assertEqual(tf_config.tf_by_host(tasks, "aabb", 4), together)
        self.assertEqual(tf_config.tf_by_host(tasks, "aabb", 3), apart)
        self.assertEqual(tf_config.tf_by_host(tasks, "aabb", None), apart)
        self.assertEqual(len(tf_config.tf_by_host(tasks, "aaab", 2)), 4)

    def test_share_a_server_between_the_workers_of_a_host(self):
        self.assertEqual(tf_config.tf_sharing({"worker": ["a:1", "b:1", "a:2"]}, ("worker", 2)),
                         {"task": "worker-2", "workers": (2, 0)})
        self.assertEqual(tf_config.tf_sharing({"worker": ["a:1", "b:1"]}, ("worker", 0)), {})


class Slurm(unittest.TestCase):
    def test_says_how_many_trainers_a_node_has(self):
        for names, replicas in (
            ({}, None),
            ({"SLURM_NTASKS_PER_NODE": "4"}, 4),
            ({"SLURM_TASKS_PER_NODE": "2(x3)"}, None),  # nobody asked for tasks
            ({"SLURM_TASKS_PER_NODE": "2(x3)", "SLURM_NTASKS": "6"}, 2),
        ):
            with self.subTest(names=names), variables(**names):
                self.assertEqual(slurm.slurm_replicas(), replicas)
        with variables(SLURM_TASKS_PER_NODE="2,1", SLURM_NTASKS="3"), self.assertRaisesRegex(ValueError, "2,1"):
            slurm.slurm_replicas()


if __name__ == "__main__":
    unittest.main()
