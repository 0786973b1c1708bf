"""The `shiftwork` command: one file per command or close family. It goes through `app` for everything."""

from shiftwork.cli.entry import main

__all__ = ["main"]
