"""Small files of every kind that a source reads, each row a number and what goes with it."""

import gzip
import io
import json
import struct
import tarfile
import zlib


def _crc_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


CRC_TABLE = _crc_table()


def masked_crc(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = CRC_TABLE[(crc ^ byte) & 255] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def tfrecords(records):
    """The bytes of a TFRecord file."""
    parts = []
    for data in records:
        length = struct.pack("<Q", len(data))
        parts += [length, struct.pack("<I", masked_crc(length))]
        parts += [data, struct.pack("<I", masked_crc(data))]
    return b"".join(parts)


def example(features):
    """A tf.train.Example of lists of integers, of floats, or of bytes."""
    entries = b"".join(
        _field(1, _field(1, name.encode()) + _field(2, _feature(values)))
        for name, values in features.items()
    )
    return _field(1, entries)


def _feature(values):
    if values and isinstance(values[0], bytes):
        return _field(1, b"".join(_field(1, value) for value in values))
    if values and isinstance(values[0], float):
        return _field(2, _field(1, struct.pack(f"<{len(values)}f", *values)))
    return _field(3, _field(1, b"".join(_varint(value & (1 << 64) - 1) for value in values)))


def _field(number, data):
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def png(height, width, seed):
    """A picture in true colour."""
    rows = b"".join(
        b"\0" + bytes((seed * 31 + y * 17 + x * 5) & 255 for x in range(3 * width)) for y in range(height)
    )
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )


def npy(numbers):
    header = f"{{'descr': '<i8', 'fortran_order': False, 'shape': ({len(numbers)},), }}"
    header += " " * (53 - len(header)) + "\n"
    magic = b"\x93NUMPY\1\0" + struct.pack("<H", len(header))
    return magic + header.encode() + struct.pack(f"<{len(numbers)}q", *numbers)


def tar(samples):
    """samples: [(name, bytes)]"""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as file:
        for name, data in samples:
            member = tarfile.TarInfo(name)
            member.size = len(data)
            file.addfile(member, io.BytesIO(data))
    return out.getvalue()


def _record(number):
    """What goes with a number."""
    return example({
        "value": [number],
        "pair": [number / 4, number / 8],
        "tags": [number % 5 + i for i in range(number % 4)],
        "word": [b"w%d" % (number % 6)],
    })  # fmt: skip


def _json(number):
    tags = [number % 5 + i for i in range(number % 4)]
    return json.dumps({"value": number, "word": f"w{number % 6}", "tags": tags})


def _picture(number, is_odd):
    return png(5 if is_odd else 4, 4, number)


def _samples(numbers, odd):
    for number in numbers:
        yield f"{number:05}.n", str(number).encode()
        yield f"{number:05}.png", _picture(number, number in odd)


KINDS = ("text", "text-gzip", "csv", "csv-gzip", "tfrecord", "tfrecord-gzip", "tfrecord-zlib", "json", "fixed",
         "webdataset", "npy")  # fmt: skip


def write(folder, number_lists):
    """A file of each kind for each list of numbers: KIND/part-N, and in KIND/bad a file with bad
    rows among good ones."""
    for kind in KINDS:
        (folder / kind).mkdir(exist_ok=True)
        for i, numbers in enumerate(number_lists):
            (folder / kind / f"part-{i}").write_bytes(file_of(kind, numbers))
        (folder / kind / "bad").write_bytes(file_of(kind, range(900, 909), {903, 906}))


def file_of(kind, numbers, bad=()):
    """The bytes of a file of these rows, some of them bad."""
    kind, _, packed = kind.partition("-")
    data = _plain(kind, numbers, bad)
    if packed == "gzip":
        return gzip.compress(data, mtime=0)
    return zlib.compress(data) if packed == "zlib" else data


def _plain(kind, numbers, bad):
    if kind == "text":
        return "".join("x\n" if n in bad else f"{n}\n" for n in numbers).encode()
    if kind == "csv":
        return "".join(f"{'x' if n in bad else n},{n / 2},w{n % 6}\n" for n in numbers).encode()
    if kind == "tfrecord":
        return tfrecords([b"\x0a\xff" if n in bad else _record(n) for n in numbers])
    if kind == "json":
        return "".join("{x\n" if n in bad else _json(n) + "\n" for n in numbers).encode()
    if kind == "fixed":
        return b"".join(struct.pack("<q", n) for n in numbers)
    if kind == "webdataset":
        return tar(_samples(numbers, bad))
    return npy(list(numbers))
