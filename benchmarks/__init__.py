"""Benchmarks: windlass beside its peers and beside the bare engine, all in one run. `make bench` runs them."""
