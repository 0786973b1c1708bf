"""What each promise costs on PostgreSQL, measured by leaving it out: `python -m benchmarks.promises`."""
