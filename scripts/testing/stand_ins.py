"""Stand-ins for CUDA libraries.

PyTorch's wheel is linked to three gigabytes of CUDA libraries and does not load without them. Without a
GPU nothing in them is called, so that a library that only has the names of their functions will do.
"""

import re
import subprocess
from collections import defaultdict
from pathlib import Path

_MISSED = "cublas cudnn cufft cufile cusolver cusparse nccl nvjitlink nvrtc nvshmem".replace(" ", "|")
_LIBRARY = re.compile(f"lib({_MISSED})", re.IGNORECASE)
_FUNCTION = re.compile(rf"((?:{_MISSED})\w*)(?:@(\S+))?$", re.IGNORECASE)


def install(site_packages):
    """Put a stand-in beside PyTorch's libraries for each library that they need and that is missing."""
    libraries = site_packages / "torch" / "lib"
    if not libraries.exists():
        return
    users = sorted(libraries.glob("*.so"))
    present = {path.name for path in site_packages.glob("nvidia/*/lib/*")}
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", _said("readelf", "--dynamic", *users)))
    missing = sorted(name for name in needed - present if _LIBRARY.match(name))
    if missing:
        stand_in = libraries / "libtundish-stand-in.so"
        _link(stand_in, _functions(users))
        for name in missing:
            (libraries / name).unlink(missing_ok=True)
            (libraries / name).hardlink_to(stand_in)


def _functions(users):
    """{version of a symbol, "" for none: its functions}, as the libraries ask for them."""
    functions = defaultdict(set)
    for line in _said("nm", "--dynamic", "--undefined-only", *users).splitlines():
        found = _FUNCTION.match(line.split()[-1]) if line.split() else None
        if found:
            functions[found[2] or ""].add(found[1])
    return functions


def _link(path, functions):
    source, script = path.with_suffix(".c"), path.with_suffix(".map")
    names = sorted(set().union(*functions.values()))
    source.write_text("".join(f"void {name}(void) {{ __builtin_trap(); }}\n" for name in names))
    versions = [(version, sorted(names)) for version, names in sorted(functions.items()) if version]
    script.write_text("".join(f"{version} {{ {'; '.join(names)}; }};\n" for version, names in versions))
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-fno-builtin", f"-Wl,--version-script={script}", "-o", path, source],
        check=True,
    )


def _said(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
