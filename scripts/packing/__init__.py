"""What scripts/package makes."""
