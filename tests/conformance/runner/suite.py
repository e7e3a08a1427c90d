"""Runs many cases at once and keeps score."""

import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from . import case as cases
from . import verdict
from .tundish import AbsentCommand, Crash, Tundish

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


@dataclass(frozen=True)
class Result:
    name: str
    outcome: str
    details: list = field(default_factory=list)


def run(folder, program, substring="", timeout_s=60):
    """Yield a Result per case under folder, in order of path."""
    above = Path(folder).resolve().parent  # its own name is not the caller's choice
    chosen = [path for path in cases.find(folder) if substring in str(path.relative_to(above))]
    with tempfile.TemporaryDirectory(prefix="tundish-cases-") as scratch:
        tundish = Tundish(program, timeout_s, Path(scratch, "cache"))
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            jobs = [pool.submit(_run_one, path, tundish, scratch) for path in chosen]
            try:
                for job in jobs:
                    yield job.result()
            finally:
                pool.shutdown(cancel_futures=True)


def _run_one(path, tundish, scratch):
    try:
        case = cases.load(path)
    except cases.BadCase as error:
        return Result(path.stem, FAILED, [str(error)])
    try:
        with tempfile.TemporaryDirectory(dir=scratch) as folder:
            return _result(case, tundish, Path(folder))
    except AbsentCommand as error:
        return Result(case.name, SKIPPED, [str(error)])
    except Crash as error:
        return Result(case.name, FAILED, [str(error)])


def _result(case, tundish, folder):
    own, analysis, complaint = folder / "case", None, None
    own.mkdir()
    if case.needs_analysis:
        analysis = folder / "analysis"
        analysis.mkdir()
        complaint = tundish.analyze(case, own, analysis)
    run_ = tundish.peek(case, own, analysis)
    if run_.absent_stage:
        return Result(case.name, SKIPPED, [f"stage {run_.absent_stage} is not in this build"])
    differences = verdict.judge(case, run_)
    if analysis:
        differences += verdict.judge_artifacts(case, analysis)
    if complaint and differences:
        differences.append(f"tundish analyze: {complaint}")
    return Result(case.name, FAILED if differences else PASSED, differences)
