"""The obligations of `shiftwork.store.protocol`, one function each: `check_…(lab)` returns or raises AssertionError."""
