"""Counts of what passed, failed and was skipped, and why."""

from dataclasses import dataclass, field


@dataclass
class Tally:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    notes: list = field(default_factory=list)  # a sentence per failure and per reason to skip
    parts: list = field(default_factory=list)  # (seconds, name) of each program of tests that ran
    reports: list = field(default_factory=list)  # the lines of each failure that was reported

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.notes += other.notes
        self.parts += other.parts
        self.reports += other.reports

    def __str__(self):
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def failure(note):
    return Tally(failed=1, notes=[note])
