"""The files of the cells mel, stft, png, augment, window, filtered and files, made of random numbers."""

import json
import random
import struct
import zlib

WAVS, SECONDS, RATE = 256, 2, 16_000
PNGS, SIDE = 128, 256
ROWS, WIDTH = 200_000, 8
LINES = 400_000
FILES = 5_000


def make(kind, folder):
    MAKERS[kind](folder, random.Random(1))


def _wavs(folder, draw):
    """Records of a WAV file each: tones under noise."""
    with open(folder / "wavs", "wb") as file:
        for _ in range(WAVS):
            tone, loud = draw.randrange(20, 200), draw.randrange(1000, 8000)
            wave = [loud if n // tone % 2 else -loud for n in range(SECONDS * RATE)]
            noise = struct.unpack(f"<{len(wave)}b", draw.randbytes(len(wave)))
            data = struct.pack(f"<{len(wave)}h", *map(sum, zip(wave, noise)))
            file.write(b"RIFF" + struct.pack("<I", 36 + len(data)) + b"WAVEfmt ")
            file.write(struct.pack("<IHHIIHH", 16, 1, 1, RATE, 2 * RATE, 2, 16))
            file.write(b"data" + struct.pack("<I", len(data)) + data)


def _pngs(folder, draw):
    """Pictures whose neighbours hardly differ, in the filter Sub."""
    for number in range(PNGS):
        head = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0)
        lines = (draw.choices(b"\0\0\0\1\2\xff", k=3 * SIDE) for _ in range(SIDE))
        rows = b"".join(b"\1" + draw.randbytes(3) + bytes(line[3:]) for line in lines)
        parts = ((b"IHDR", head), (b"IDAT", zlib.compress(rows, 6)), (b"IEND", b""))
        chunks = (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
            for kind, data in parts
        )
        (folder / f"{number:04}.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(chunks))


def _series(folder, draw):
    """A time series: records of float32 numbers, which are whole."""
    with open(folder / "series", "wb") as file:
        for _ in range(ROWS):
            file.write(struct.pack(f"<{WIDTH}f", *(draw.randrange(1000) for _ in range(WIDTH))))


def _lines(folder, draw):
    with open(folder / "rows.jsonl", "w") as file:
        for n in range(LINES):
            row = {"a": n, "b": draw.randrange(1000), "c": draw.randrange(1000) / 8, "d": f"word{n % 997}"}
            file.write(json.dumps(row) + "\n")


def _files(folder, draw):
    for n in range(FILES):
        (folder / f"part-{n:05}.txt").write_text("".join(f"{draw.randrange(1_000_000)}\n" for _ in range(20)))


MAKERS = {"wavs": _wavs, "pngs": _pngs, "series": _series, "lines": _lines, "files": _files}
