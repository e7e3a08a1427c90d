"""The work of scripts/torture."""
