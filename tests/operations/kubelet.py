"""Starts the containers of a Kubernetes manifest with podman, as a node's kubelet does: for tests.

What the manifest says of users, rights, memory, folders and the environment becomes podman's options. A
pod's /dev/shm has 64 MiB. Images of others are replaced by the one of the test.
"""

import json
import re
from pathlib import Path

import yaml

_UNITS = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}


def objects(path):
    """{kind: object} of a file."""
    found = list(yaml.safe_load_all(Path(path).read_text()))
    return {each["kind"]: each for each in found}


def pod(found):
    """What a DaemonSet or a Job says of its pods."""
    return found["spec"]["template"]["spec"]


def quantity(text):
    number, unit = re.fullmatch(r"(\d+)(\w+)", text).groups()
    return int(number) * _UNITS[unit]


class Node:
    """A folder that stands for the node's file system, and what the cluster has."""

    def __init__(self, folder, image, claims, config_maps):
        self.folder, self.image, self.claims, self.config_maps = folder, image, claims, config_maps

    def words(self, spec, container, index="0"):
        """The options and the command with which podman starts a container of a pod."""
        security = {**spec.get("securityContext", {}), **container.get("securityContext", {})}
        words = [*self._rights(security), "--shm-size=64m"]
        if "limits" in container.get("resources", {}):
            words.append(f"--memory={quantity(container['resources']['limits']['memory'])}")
        words += [f"--volume={self._volume(spec, mount)}" for mount in container["volumeMounts"]]
        words += [f"--env={each['name']}={_value(each, index)}" for each in container.get("env", [])]
        if "command" in container:
            words.append(f"--entrypoint={json.dumps(container['command'])}")
        image = container["image"] if container["image"].startswith("localhost/") else self.image
        return [*words, image, *container.get("args", [])]

    @staticmethod
    def _rights(security):
        words = []
        if "runAsUser" in security:
            words.append(f"--user={security['runAsUser']}:{security.get('runAsGroup', 0)}")
        words += [f"--group-add={group}" for group in security.get("supplementalGroups", [])]
        words += [f"--cap-drop={name}" for name in security["capabilities"]["drop"]]
        words += [f"--cap-add={name}" for name in security["capabilities"].get("add", [])]
        if not security["allowPrivilegeEscalation"]:
            words.append("--security-opt=no-new-privileges")
        if security.get("readOnlyRootFilesystem"):
            words += ["--read-only", "--read-only-tmpfs=false"]
        return words

    def _volume(self, spec, mount):
        (volume,) = (each for each in spec["volumes"] if each["name"] == mount["name"])
        options = "ro" if mount.get("readOnly") else "rw"
        return f"{self._source(volume)}:{mount['mountPath']}:{options}"

    def _source(self, volume):
        """A folder of the node, which is root's if it is made."""
        folder = self.folder / volume["name"]
        if "hostPath" in volume:
            folder = self.folder / volume["hostPath"]["path"].lstrip("/")
            if volume["hostPath"]["type"] == "Directory":
                assert folder.is_dir(), f"the pod would wait for {folder}"
        elif "persistentVolumeClaim" in volume:
            return self.claims[volume["persistentVolumeClaim"]["claimName"]]
        folder.mkdir(parents=True, exist_ok=True)
        if "configMap" in volume:
            for name, text in self.config_maps[volume["configMap"]["name"]].items():
                (folder / name).write_text(text)
        if "emptyDir" in volume:
            folder.chmod(0o777)
        return folder


def _value(variable, index):
    if "value" in variable:
        return variable["value"]
    path = variable["valueFrom"]["fieldRef"]["fieldPath"]
    assert path == "metadata.annotations['batch.kubernetes.io/job-completion-index']", path
    return index
