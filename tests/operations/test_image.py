"""The image of the Containerfile, and the pods of admin/kubernetes, in containers that podman starts."""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("TUNDISH_BUILD", REPOSITORY / "build"))
COUNTER = BUILD / "sdk" / "examples" / "count_rows"
MANIFESTS = REPOSITORY / "admin" / "kubernetes"
DEADLINE_S = int(os.environ.get("TUNDISH_TEST_DEADLINE_S", "1800"))
sys.path.insert(0, str(REPOSITORY / "scripts"))
from packing import image, source  # noqa: E402

try:
    import kubelet
except ImportError as missing:
    raise unittest.SkipTest(f"{missing}: python3-yaml is not installed") from missing

# Of what the image adds to Debian.
SIZE_MAX = 120 << 20
CAPTURED = {"capture_output": True, "timeout": DEADLINE_S}


def setUpModule():
    if os.geteuid() != 0:
        raise unittest.SkipTest("only root is sure to be let make containers")
    try:
        image.needs_podman()
    except source.Missing as missing:
        raise unittest.SkipTest(str(missing)) from missing
    command = [REPOSITORY / "scripts" / "package", "image"]
    subprocess.run(command, check=True, timeout=DEADLINE_S, stdout=sys.stderr)


def status_of(podman, *words):
    """(status, output) of podman."""
    try:
        done = podman(*words, **CAPTURED)
    except subprocess.CalledProcessError as error:
        done = error
    return done.returncode, done.stdout + done.stderr


class Containers(unittest.TestCase):
    def setUp(self):
        # Users of containers look into it.
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="tundish-image-")))
        self.folder.chmod(0o755)
        self.number = 0

    def start(self, *words, network="none"):
        """A container that runs; returns its name."""
        name = f"{self.folder.name}-{self.number}"
        self.number += 1
        self.addCleanup(status_of, image.podman, "rm", "--force", "--time=0", name)
        image.run("--detach", f"--name={name}", *words, network=network, **CAPTURED)
        return name

    def finish(self, name):
        """Wait until it has ended; returns its status and what it wrote."""
        status = image.podman("wait", name, **CAPTURED).stdout
        return int(status), self.log(name)

    def log(self, name):
        return status_of(image.podman, "logs", name)[1]

    def await_in(self, name, *command):
        """Until a command in the container succeeds."""
        script = 'until "$@" >/dev/null 2>&1; do sleep 0.1; done'
        status, said = status_of(
            image.podman, "exec", name, "timeout", str(DEADLINE_S), "sh", "-c", script, "sh", *command
        )
        self.assertEqual(status, 0, said + self.log(name))

    def stop(self, name):
        """As an operator or a kubelet does, with the image's own signal."""
        image.podman("stop", f"--time={DEADLINE_S}", name, **CAPTURED)
        return self.finish(name)


class Image(Containers):
    """By itself, with a pipeline file and a folder for the socket."""

    def configured(self):
        (found,) = json.loads(image.podman("image", "inspect", image.tag(), **CAPTURED).stdout)
        return found

    def write(self, deliver="{epochs: 1}", stages="[range: 1000, batch: 10]"):
        (self.folder / "pipeline.yaml").write_text(
            f"streams: {{train: {{dataset: {stages}, deliver: {deliver}}}}}\n"
        )
        (self.folder / "run").mkdir(exist_ok=True)
        os.chown(self.folder / "run", 8465, 8465)

    def serve(self, *options):
        volumes = (f"--volume={self.folder}/pipeline.yaml:/etc/tundish/pipeline.yaml:ro",
                   f"--volume={self.folder}/run:/run/tundish")  # fmt: skip
        return self.start(*options, *volumes, image.tag())

    def read(self):
        """What count_rows counts beside the server, which has the host's processes and another /dev/shm."""
        counted = self.folder / "counted"
        environment = os.environ | {"TUNDISH_SERVER": str(self.folder / "run" / "server"),
                                    "TUNDISH_SERVER_UID": "8465", "TUNDISH_REPLICA": "0"}  # fmt: skip
        subprocess.run([COUNTER, counted], env=environment, check=True, timeout=DEADLINE_S)
        return int(counted.read_text().split()[0])

    def test_it_is_small_and_has_no_tools(self):
        (base,) = json.loads(image.podman("image", "inspect", image.base(), **CAPTURED).stdout)
        self.assertLess(self.configured()["Size"] - base["Size"], SIZE_MAX)
        script = "command -v cc meson python3 || echo none"
        said = image.run("--rm", "--entrypoint=sh", image.tag(), "-c", script, **CAPTURED).stdout
        self.assertEqual(said, "none\n")

    def test_every_library_is_there(self):
        script = "ldd /usr/bin/tundish /usr/bin/tundish-admin; test -s /usr/share/javascript/chart.js/Chart.min.js"
        status, said = status_of(image.run, "--rm", "--entrypoint=sh", image.tag(), "-c", script)
        self.assertEqual(status, 0)
        self.assertNotIn("not found", said)

    def test_it_says_how_it_is_stopped_and_looked_after(self):
        config = self.configured()
        self.assertEqual(config["Config"]["StopSignal"], "SIGTERM")
        self.assertEqual(config["Config"]["User"], "8465:8465")
        self.assertEqual(config["Healthcheck"]["Test"][:3], ["CMD", "tundish", "status"])

    def test_it_serves_until_it_is_stopped(self):
        self.write("{epochs: 100000}")
        name = self.serve()
        self.await_in(name, "tundish", "status")
        self.assertEqual(status_of(image.podman, "healthcheck", "run", name)[0], 0)
        status, log = self.stop(name)
        self.assertEqual(status, 0, log)
        self.assertIn("stop: stopped", log)

    def test_a_stream_that_has_failed_is_not_healthy(self):
        (self.folder / "rows.txt").write_text("1\nx\n")
        stages = "[text_line: {filenames: /data/rows.txt}, batch: 1, decode_csv: {record_defaults: [int64], "
        self.write(stages=stages + "column_names: [value]}]")
        name = self.serve(f"--volume={self.folder}:/data:ro")
        self.await_in(name, "sh", "-c", "tundish status; test $? = 4")
        self.assertNotEqual(status_of(image.podman, "healthcheck", "run", name)[0], 0)

    def test_where_dev_shm_is_too_small_the_log_has_the_arithmetic(self):
        self.write("{epochs: 1, lane_bytes: 96MiB}")
        name = self.serve("--shm-size=64m")
        self.await_in(name, "tundish", "status")
        said = re.search(r"/dev/shm has (\d+) of (\d+) bytes free, (\d+) are needed: using memfd", self.log(name))
        free, size, needed = map(int, said.groups())
        self.assertTrue(free <= size == 64 << 20 and needed >= 96 << 20, said[0])
        self.assertEqual(self.read(), 1000)

    def test_where_the_limit_is_too_small_the_refusal_has_the_arithmetic(self):
        for memory in ("shm", "memfd"):
            self.write(f"{{epochs: 1, lane_bytes: 96MiB, memory: {memory}}}")
            status, log = self.finish(self.serve("--memory=64m"))
            self.assertEqual(status, 3, log)
            said = re.search(r"need (\d+) bytes .* but there is room for (\d+) \((.*)\)", log)
            self.assertTrue(int(said[1]) >= 96 << 20 > 64 << 20 >= int(said[2]), log)
            self.assertRegex(said[3], "the control group .* has a limit of 67108864")


class Pods(Containers):
    """The manifests, as a node runs them."""

    FILES, ROWS = 4, 500

    def setUp(self):
        super().setUp()
        self.server = kubelet.objects(MANIFESTS / "daemonset.yaml")
        self.job = kubelet.objects(MANIFESTS / "job.yaml")["Job"]
        self.server_pod, self.trainer_pod = kubelet.pod(self.server["DaemonSet"]), kubelet.pod(self.job)
        data = self.folder / "data"
        data.mkdir()
        for number in range(self.FILES):
            (data / f"{number}.tsv").write_text("".join(f"{row}\tterm{row}\n" for row in range(self.ROWS)))
        maps = {self.server["ConfigMap"]["metadata"]["name"]: self.server["ConfigMap"]["data"]}
        self.node = kubelet.Node(self.folder / "node", image.tag(), {"clicks": data}, maps)

    def test_they_share_the_folder_of_the_socket_alone(self):
        for pod in (self.server_pod, self.trainer_pod):
            self.assertFalse({"hostIPC", "hostPID", "hostNetwork"} & set(pod))
            for container in pod["containers"]:
                self.assertNotIn("/dev/shm", [mount["mountPath"] for mount in container["volumeMounts"]])
        folders = [
            {volume["hostPath"]["path"] for volume in pod["volumes"] if "hostPath" in volume}
            for pod in (self.server_pod, self.trainer_pod)
        ]
        self.assertEqual(folders[0] & folders[1], folders[1])
        self.assertEqual(len(self.trainer_pod["volumes"]), 1)

    def test_the_numbers_agree(self):
        text = self.server["ConfigMap"]["data"]["pipeline.yaml"]
        stream = kubelet.yaml.safe_load(text)["streams"]["train"]
        self.assertEqual(stream["distribute"]["replicas"], self.job["spec"]["completions"])
        self.assertEqual(self.job["spec"]["parallelism"], self.job["spec"]["completions"])
        version = source.version()
        images = {
            container["image"]
            for container in self.server_pod["initContainers"] + self.server_pod["containers"]
        }
        self.assertEqual(images, {f"localhost/tundish:{version}"})

    def test_the_memory_of_batches_is_within_the_limit(self):
        text = self.server["ConfigMap"]["data"]["pipeline.yaml"]
        limit = kubelet.yaml.safe_load(text)["streams"]["train"]["deliver"]["memory_limit"]
        server = self.server_pod["containers"][0]
        self.assertLess(kubelet.quantity(limit.removesuffix("B")),
                        kubelet.quantity(server["resources"]["limits"]["memory"]))  # fmt: skip

    def test_a_job_reads_what_the_nodes_server_serves(self):
        for container in self.server_pod["initContainers"]:
            status, log = self.finish(self.start(*self.node.words(self.server_pod, container)))
            self.assertEqual(status, 0, log)
        server, admin = self.server_pod["containers"]
        name = self.start(*self.node.words(self.server_pod, server))
        self.await_in(name, *server["startupProbe"]["exec"]["command"])
        page = self.start(*self.node.words(self.server_pod, admin), network=f"container:{name}")
        self.assertEqual(self.train(), self.epochs() * self.FILES * self.ROWS)
        self.assertEqual(self.probe(name, server), 0)
        self.await_ready(page, "200")
        # The page's own processes have the server's number, too.
        image.podman("kill", "--signal=KILL", name, **CAPTURED)
        self.await_ready(page, "503")

    def epochs(self):
        text = self.server["ConfigMap"]["data"]["pipeline.yaml"]
        return kubelet.yaml.safe_load(text)["streams"]["train"]["deliver"]["epochs"]

    def train(self):
        """The rows that the job's trainers count."""
        counts = self.folder / "counts"
        counts.mkdir()
        counts.chmod(0o777)
        (container,) = self.trainer_pod["containers"]
        container["command"] = [str(COUNTER)]
        mounts = (f"--volume={BUILD}:{BUILD}:ro", f"--volume={counts}:/counts")
        names = []
        for index in map(str, range(self.job["spec"]["completions"])):
            container["args"] = [f"/counts/{index}"]
            names.append(self.start(*mounts, *self.node.words(self.trainer_pod, container, index)))
        for name in names:
            status, log = self.finish(name)
            self.assertEqual(status, 0, log)
        return sum(int(path.read_text().split()[0]) for path in counts.iterdir())

    def probe(self, name, container):
        command = container["livenessProbe"]["exec"]["command"]
        return status_of(image.podman, "exec", name, *command)[0]

    def await_ready(self, name, answer):
        """Until tundish-admin says so of the server."""
        script = "exec 3<>/dev/tcp/127.0.0.1/8465 && printf 'GET /readyz HTTP/1.1\r\nHost: 127.0.0.1:8465\r\n" \
            "Connection: close\r\n\r\n' >&3 && head -n 1 <&3 | grep -q"
        self.await_in(name, "bash", "-c", f"{script} {answer}")


if __name__ == "__main__":
    unittest.main()
