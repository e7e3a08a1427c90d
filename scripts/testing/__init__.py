"""The parts that scripts/test runs."""
