"""What scripts/torture does."""
