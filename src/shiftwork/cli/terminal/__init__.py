"""How the command line reads and writes: types of options, tables, the progress bar, the full screen.

Nothing here knows a command, or asks a store.
"""
