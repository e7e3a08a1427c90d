"""The image of the Containerfile, for podman, Docker and Kubernetes.

It is built in a store of its own, which keeps the layers for the next time.
"""

import gzip
import os
import re
import shutil
import subprocess
from pathlib import Path

from . import source

WORK = source.REPOSITORY / "build-image"
DIST = source.REPOSITORY / "dist"

_STORE = ("--root", WORK / "store", "--runroot", WORK / "run")
# chroot needs neither control groups nor a right to raise limits. Other formats have no HEALTHCHECK.
_BUILD = ("--isolation=chroot", "--format=docker", "--pull=never", "--quiet")
_CODENAMES = {"12": "bookworm"}
# Folders that images of Debian leave out.
_SLIM = [f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in ("doc", "info", "locale", "man")]


def make():
    """dist/: an image for podman and Docker, made by root; needs `scripts/package --deps` once"""
    needs_podman()
    name, tree = tag(), WORK / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    source.copy_to(tree)
    print("package: building the image, which takes minutes", flush=True)
    podman("build", *_BUILD, *_with_ccache(), "--timestamp", str(source.date()), "--tag", name, tree)
    said = run("--rm", name, "--version", stdout=subprocess.PIPE).stdout
    assert said == f"tundish {source.version()}\n", said
    DIST.mkdir(exist_ok=True)
    for old in DIST.glob("tundish-*-image.tar.gz"):
        old.unlink()
    path = DIST / f"tundish-{source.version()}-image.tar.gz"
    _save(name, path)
    print(f"dist/{path.name}: {path.stat().st_size / 1e6:.1f} MB")


def needs_podman():
    """It is there, and may start containers: their base is got for that."""
    source.needs("podman", "runc", "mmdebstrap")
    _get_base(base())
    try:
        run("--rm", base(), "true", capture_output=True)
    except subprocess.CalledProcessError as error:
        said = error.stderr.strip().splitlines()[-1:]
        raise source.Missing(f"podman starts no container here: {' '.join(said)}") from error


def base():
    """The image that the Containerfile begins with."""
    text = (source.REPOSITORY / "Containerfile").read_text()
    return re.search(r"^FROM (\S+)$", text, re.MULTILINE)[1]


def tag():
    return f"localhost/tundish:{source.version()}"


def podman(*words, **options):
    """Run podman on the store of images."""
    command = ["podman", *_STORE, "--runtime=runc", *words]
    return subprocess.run(command, check=True, text=True, stdin=subprocess.DEVNULL, **options)


def run(*words, network="none", **options):
    """Run a container. Its limits are ones that every caller may set."""
    limits = ("--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024")
    return podman("run", f"--network={network}", *limits, *words, **options)


def _with_ccache():
    """The caller's ccache and its folder, for the build's steps alone: Meson takes one that it finds."""
    program, folder = shutil.which("ccache"), os.environ.get("CCACHE_DIR")
    if not program or not folder:
        return []
    Path(folder).mkdir(parents=True, exist_ok=True)
    said = subprocess.check_output(["ldd", program], text=True)
    files = [program, *re.findall(r"=> (\S+/libhiredis\S+)", said)]  # of what it links, no compiler has this
    return [f"--volume={folder}:/root/.cache/ccache", *(f"--volume={path}:{path}:ro" for path in files)]


def _get_base(name):
    """From the registry, or of the same packages where it does not answer."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    for words in (("image", "exists", name), ("pull", "--quiet", name)):
        try:
            return podman(*words, **quiet)
        except subprocess.CalledProcessError:
            continue
    print(f"package: {name} cannot be had: its packages come from Debian's mirror", flush=True)
    release = re.search(r":(\d+)-slim$", name)[1]
    archive = WORK / "base.tar"
    command = ["mmdebstrap", "--quiet", "--variant=minbase", *_SLIM, _CODENAMES[release], archive]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    podman("import", "--quiet", archive, name, **quiet)
    archive.unlink()


def _save(name, path):
    """With the time of its layers alone, so that it is as the source is."""
    archive = WORK / "image.tar"
    archive.unlink(missing_ok=True)
    podman("save", "--quiet", "--format=docker-archive", "--output", archive, name)
    with open(archive, "rb") as plain, open(path, "wb") as file:
        with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=file, mtime=0) as packed:
            shutil.copyfileobj(plain, packed)
    archive.unlink()
