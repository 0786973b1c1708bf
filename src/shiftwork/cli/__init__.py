"""The `shiftwork` command: one file per command or close family. It goes through `control` for everything."""

from shiftwork.cli.entry import main

__all__ = ["main"]
