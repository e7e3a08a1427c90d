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
    """The stages that make a column `value` of so many rows; what they read is written to folder."""
    if kind == "range":
        return [f"range: {rows}"]
    each = -(-rows // FILES)
    parts = [range(i * each, min(rows, (i + 1) * each)) for i in range(1 if kind == "npy" else FILES)]
    if kind == "npy":
        parts = [range(rows)]
    (folder / kind).mkdir()
    names = []
    for i, numbers in enumerate(parts):
        names.append(str(folder / kind / f"part-{i}"))
        Path(names[-1]).write_bytes(small_files.file_of(kind, list(numbers)))
    if kind == "npy":
        return [f'from_tensor_slices: {{value: {{npy: "{names[0]}"}}}}']
    reader, parse, _ = KINDS[kind]
    ((name, arguments),) = reader.items()
    made = [{name: {"filenames": names, **arguments}}, *parse, {"select": {"columns": ["value"]}}]
    return [stage_text(stage) for stage in made]
