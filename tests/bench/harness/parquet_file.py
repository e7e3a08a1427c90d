"""Writes Parquet files of random rows, without other packages: integers, numbers, texts with a dictionary and
without, and lists, neither packed nor null."""

import functools
import random
from array import array

GROUP_ROWS = 1 << 17
LIST_VALUES = 4
_I32, _I64, _BINARY, _LIST, _STRUCT = 5, 6, 8, 9, 12
_INT64, _FLOAT, _BYTES = 2, 4, 6
_PLAIN, _DICTIONARY = 0, 8
_WORDS = 1 << 16

# name: type, name of the leaf
_COLUMNS = {
    "wide": (_INT64, ["wide"]),
    "narrow": (_INT64, ["narrow"]),
    "number": (_FLOAT, ["number"]),
    "word": (_BYTES, ["word"]),
    "text": (_BYTES, ["text"]),
    "list": (_INT64, ["list", "list", "element"]),
}  # fmt: skip


def _varint(number):
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(out + bytes([number]))


def _number(value):
    return _varint(value << 1)


def _text(text):
    return _varint(len(text)) + text.encode()


def _list(kind, values):
    head = bytes([len(values) << 4 | kind]) if len(values) < 15 else bytes([0xF0 | kind]) + _varint(len(values))
    return head + b"".join(values)


def _struct(*fields):
    """In Thrift's compact protocol: (number, type, bytes), ascending."""
    out, last = b"", 0
    for number, kind, value in fields:
        out += bytes([number - last << 4 | kind]) + value
        last = number
    return out + b"\0"


def _page(kind, count, encoding, data):
    about = [(1, _I32, _number(count)), (2, _I32, _number(encoding))]
    if kind == 0:
        about += [(3, _I32, _number(3)), (4, _I32, _number(3))]  # levels are runs
    size = _number(len(data))
    head = [(1, _I32, _number(kind)), (2, _I32, size), (3, _I32, size)]
    return _struct(*head, (5 if kind == 0 else 7, _STRUCT, _struct(*about))) + data


def _counted(data):
    return len(data).to_bytes(4, "little") + data


@functools.cache
def _words():
    words = (f"word{i * 2654435761 % (1 << 32):x}".encode() for i in range(_WORDS))
    return _page(2, _WORDS, _PLAIN, b"".join(map(_counted, words)))


def _chunk(name, rows, draw):
    """Its pages, how many values they have, and how long a dictionary's is that comes first."""
    if name == "wide":
        return _page(0, rows, _PLAIN, draw.randbytes(8 * rows)), rows, 0
    if name == "narrow":
        return _page(0, rows, _PLAIN, array("q", array("H", draw.randbytes(2 * rows))).tobytes()), rows, 0
    if name == "number":
        return _page(0, rows, _PLAIN, array("f", array("H", draw.randbytes(2 * rows))).tobytes()), rows, 0
    if name == "word":
        groups = (rows + 7) // 8
        numbers = bytes([16]) + _varint(groups << 1 | 1) + draw.randbytes(16 * groups)
        words = _words()
        return words + _page(0, rows, _DICTIONARY, numbers), rows, len(words)
    if name == "text":
        text = draw.randbytes(6 * rows).hex().encode()
        texts = b"".join(b"\x0c\0\0\0" + text[at : at + 12] for at in range(0, len(text), 12))
        return _page(0, rows, _PLAIN, texts), rows, 0
    values = LIST_VALUES * rows
    repeats = _counted(_varint((values + 7) // 8 << 1 | 1) + b"\xee" * ((values + 7) // 8))
    defines = _counted(_varint(values << 1) + b"\1")
    numbers = array("q", array("H", draw.randbytes(2 * values))).tobytes()
    return _page(0, values, _PLAIN, repeats + defines + numbers), values, 0


def _schema():
    yield _struct((4, _BINARY, _text("rows")), (5, _I32, _number(len(_COLUMNS))))
    for name, (kind, path) in _COLUMNS.items():
        if len(path) > 1:
            one = (5, _I32, _number(1))
            yield _struct((3, _I32, _number(0)), (4, _BINARY, _text(name)), one, (6, _I32, _number(3)))
            yield _struct((3, _I32, _number(2)), (4, _BINARY, _text(path[1])), one)
        means = [(6, _I32, _number(0))] if kind == _BYTES else []
        yield _struct((1, _I32, _number(kind)), (3, _I32, _number(0)), (4, _BINARY, _text(path[-1])), *means)


def _group(file, rows, draw):
    chunks, begin = [], file.tell()
    for name, (kind, path) in _COLUMNS.items():
        at = file.tell()
        pages, values, words = _chunk(name, rows, draw)
        file.write(pages)
        size = _number(len(pages))
        about = [
            (1, _I32, _number(kind)), (2, _LIST, _list(_I32, [_number(_DICTIONARY if words else _PLAIN)])),
            (3, _LIST, _list(_BINARY, list(map(_text, path)))), (4, _I32, _number(0)), (5, _I64, _number(values)),
            (6, _I64, size), (7, _I64, size), (9, _I64, _number(at + words)),
        ]  # fmt: skip
        about += [(11, _I64, _number(at))] if words else []
        chunks.append(_struct((2, _I64, _number(at)), (3, _STRUCT, _struct(*about))))
    size = _number(file.tell() - begin)
    return _struct((1, _LIST, _list(_STRUCT, chunks)), (2, _I64, size), (3, _I64, _number(rows)))


def write(path, rows):
    draw = random.Random(1)
    with open(path, "wb") as file:
        file.write(b"PAR1")
        groups = [_group(file, min(GROUP_ROWS, rows - at), draw) for at in range(0, rows, GROUP_ROWS)]
        footer = _struct(
            (1, _I32, _number(1)), (2, _LIST, _list(_STRUCT, list(_schema()))), (3, _I64, _number(rows)),
            (4, _LIST, _list(_STRUCT, groups)),
        )  # fmt: skip
        file.write(footer + len(footer).to_bytes(4, "little") + b"PAR1")
