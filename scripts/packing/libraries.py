"""Libraries as wheels are to bundle them: small, and with their licences."""

import re
import subprocess
from pathlib import Path

# Every Linux that a wheel is for has these (PEP 600), so they stay out.
_EVERYWHERE = re.compile(r"(ld-linux.*|lib(c|m|dl|rt|z|pthread|gcc_s|stdc\+\+))\.so\b.*")

# A table of contents with nothing in it, as ICU reads it.
_NO_ICU_DATA = """
const _Alignas(16) unsigned char icudt{major}_dat[48] = {{
    32, 0, 0xda, 0x27, 20, 0, 0, 0, 0, 0, 2, 0, 'C', 'm', 'n', 'D', 1, 0, 0, 0, 3, 0, 0, 0,
}};
"""


def without_icu_data(folder):
    """A libicudata without its 30 MB. They are for collation, calendars and converters. Tundish asks for
    letters' cases and kinds alone, which are part of libicuuc."""
    major = _said("pkg-config", "--modversion", "icu-uc").split(".")[0]
    name = f"libicudata.so.{major}"
    source = folder / "icudata.c"
    source.write_text(_NO_ICU_DATA.format(major=major))
    options = ["-shared", "-fPIC", f"-Wl,-soname,{name}"]
    subprocess.run(["cc", *options, "-o", folder / name, source], check=True)


def without_xml(folder):
    """A libarchive.pc that links only what is used of libarchive, which needs no libxml2 (and so no ICU)
    and no ACLs."""
    version = _said("pkg-config", "--modversion", "libarchive")
    used = "-l:libarchive.a -l:liblzma.so.5 -l:liblz4.so.1 -l:libbz2.so.1.0 -lzstd -lz"
    (folder / "libarchive.pc").write_text(
        f"Name: libarchive\nDescription: its filters\nVersion: {version}\nLibs: {used}\n"
    )


def add_licences(programs, folder):
    """Copy what Debian says about the libraries that these programs and libraries bundle."""
    paths = {Path(_said("cc", "-print-file-name=libarchive.a"))}
    for program in programs:
        found = re.findall(r"=> (/\S+)", _said("ldd", program))
        paths |= {Path(path) for path in found if not _EVERYWHERE.fullmatch(Path(path).name)}
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted(paths):
        search = ["dpkg", "-S", f"*/{path.resolve().name}"]  # in /lib or /usr/lib, which are one
        owner = subprocess.run(search, capture_output=True, text=True, check=False)
        package = owner.stdout.split(":")[0]
        copyright_file = Path("/usr/share/doc", package, "copyright")
        if package and copyright_file.exists():
            (folder / f"{package}.txt").write_bytes(copyright_file.read_bytes())


def _said(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
