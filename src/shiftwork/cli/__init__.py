"""The `shiftwork` command: one file for each kind of thing, with the commands that show it and change it.

`entry` is the group of all commands, with exit codes and NO_COLOR (`top` has colours of its own), `connect` finds the
store of a command. The commands go through `control`, and through `serve` and `app` for running an app. No command
talks to a store itself, and none decides anything: rules are in `core`, values to show in `views`.
"""

from shiftwork.cli.entry import main

__all__ = ["main"]
