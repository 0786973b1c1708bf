"""The obligations of `windlass.store.protocol`, one function each: `check_…(lab)` returns, or raises AssertionError."""
