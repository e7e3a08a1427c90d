"""What scripts/bench runs: cells, data, measuring, and the comparison with peers and limits."""
