"""Record the case whose pipeline file is given. Runs in the environment that has TensorFlow."""

import os
import sys
from pathlib import Path

os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from runner import case as cases  # noqa: E402

from . import layout, recording  # noqa: E402
from .program import BadProgram  # noqa: E402


def main(path):
    os.chdir(cases.root_of(path))  # where its files are
    record = path.with_suffix(".json")
    try:
        record.write_text(layout.text(recording.record(path)), encoding="utf-8")
    except BadProgram as error:
        sys.exit(f"record: {error}")
    print(f"recorded {record.relative_to(Path.cwd())}")


main(Path(sys.argv[1]))
