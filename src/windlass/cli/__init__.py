"""The `windlass` command: one file per command or close family. It goes through `windlass.app` for everything."""

from windlass.cli.entry import main

__all__ = ["main"]
