"""The packages that scripts/package makes."""
