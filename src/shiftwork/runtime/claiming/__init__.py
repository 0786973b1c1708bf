"""One instance and its jobs: claim as many as there is room for, have them run, settle how they ended."""
