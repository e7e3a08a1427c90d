"""The name that tundish.rows had when it was a module by itself."""

from tundish.rows import RowWriter

__all__ = ["RowWriter"]
