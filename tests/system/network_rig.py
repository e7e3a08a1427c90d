"""Nodes with a network between them (networks.py), each with its own host name, and mpirun across them."""

import os
import shlex

from networks import ADDRESSES, DEVICE, Networks, Wire
from nodes_rig import NodesRig
from rig import READER, TUNDISH
from transports import mca, transports


class NetworkRig(NodesRig):
    NODES = 2
    WIRE = Wire()
    TRANSPORT = "tcp"

    def setUp(self):
        super().setUp()
        self.network = Networks(self.NODES, self.WIRE)
        self.addCleanup(self.network.close)
        self.transport = transports(DEVICE)[self.TRANSPORT]
        self.environment.update(self.transport.environment)
        spaces = self.network.spaces[0].removesuffix("0")
        self.on_node = self.script(
            "on-node", "node=$1; shift",
            f"exec ip netns exec {spaces}$node unshare --uts "
            "sh -c 'hostname $0; exec \"$@\"' tundish-$node \"$@\"")
        self.agent = self.script(  # stands in for ssh; the last number of an address is the node's
            "agent", "address=$1; shift",
            f'exec {self.on_node} $((${{address##*.}} - 1)) sh -c "$*"')

    def script(self, name, *lines):
        path = self.path / name
        path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
        path.chmod(0o755)
        return str(path)

    def begin_network(self, file, *options, nodes=None):
        """mpirun runs on the first node and reaches the others through the agent. $RANK may be in the
        name of the file."""
        nodes = self.NODES if nodes is None else nodes
        server = (
            f"RANK=$OMPI_COMM_WORLD_RANK; echo $$ >{self.path}/pid.$RANK; exec {shlex.quote(TUNDISH)} serve {file} "
            f"--socket {self.path}/server.$RANK {shlex.join(options)} 2>{self.path}/log.$RANK"
        )
        script = (
            f"sh -c {shlex.quote(server)} & "
            f"wait $!; echo $? >{self.path}/status.$OMPI_COMM_WORLD_RANK"
        )
        command = [
            "mpirun", *["--allow-run-as-root"] * (os.geteuid() == 0), "--enable-recovery",
            *mca(plm_rsh_agent=self.agent, orte_tmpdir_base=str(self.path), oob_tcp_if_include=DEVICE),
            *self.transport.options,
            "--host", ",".join(f"{address}:1" for address in ADDRESSES[:nodes]),
            "-n", str(nodes), "sh", "-c", script,
        ]
        return self.start([self.on_node, "0", *command])

    def serve_network(self, file, *options, **more):
        """The same, once all are ready."""
        job = self.begin_network(file, *options, **more)
        ranks = range(more.get("nodes") or self.NODES)
        self.wait_for(lambda: all(map(self.is_ready, ranks)) or job.poll() is not None)
        self.assertTrue(all(map(self.is_ready, ranks)), self.all_logs())
        for rank in ranks:
            self.ranks[rank] = int((self.path / f"pid.{rank}").read_text())
        return job

    def read_node(self, rank, *options, replica=0, stream="train"):
        return self.start([*self.network.on(rank), READER, *options], TUNDISH_STREAM=stream,
                          TUNDISH_SERVER=self.node_socket(rank), TUNDISH_REPLICA=str(replica))
