"""What scripts/test runs."""
