"""`python -m shiftwork` is `shiftwork`."""

from shiftwork.cli import main

main(prog_name="shiftwork")
