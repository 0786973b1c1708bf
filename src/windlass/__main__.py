"""`python -m windlass` is `windlass`."""

from windlass.cli import main

main(prog_name="windlass")
