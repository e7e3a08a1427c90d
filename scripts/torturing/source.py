"""The rows: numbers from 0, out of nothing or out of files of every kind."""

import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2] / "tests"
sys.path[:0] = [str(TESTS / "data"), str(TESTS / "property")]
import small_files  # noqa: E402
from order.generate import stage_text  # noqa: E402
from pipelines.generate import KINDS  # noqa: E402

FILES = 5
SOURCES = ["range", "npy", *KINDS]


def stages(kind, folder, rows):
    """The stages that make a column `value` of `rows` rows; their files are written to folder."""
    (folder / kind).mkdir(exist_ok=True)

    def write(i, data):
        name = folder / kind / f"part-{i}"
        name.write_bytes(data)
        return str(name)

    return stages_of(kind, write, rows)


def stages_of(kind, write, rows):
    """The same, whose files `write(number, bytes)` puts where it says."""
    if kind == "range":
        return [f"range: {rows}"]
    if kind == "npy":
        name = write(0, small_files.file_of(kind, list(range(rows))))
        return [f'from_tensor_slices: {{value: {{npy: "{name}"}}}}']
    each = -(-rows // FILES)
    parts = [range(i * each, min(rows, (i + 1) * each)) for i in range(FILES)]
    names = [write(i, small_files.file_of(kind, list(numbers))) for i, numbers in enumerate(parts)]
    reader, parse, _ = KINDS[kind]
    ((name, arguments),) = reader.items()
    made = [{name: {"filenames": names, **arguments}}, *parse, {"select": {"columns": ["value"]}}]
    return [stage_text(stage) for stage in made]
