"""Histories: what a system did, written down while it did it, and the rules that such a record has to obey.

`lines` is the format, `recorder` writes it, `recorded_store` records the calls of a store, `reader` puts the files of
all processes together, and `rules` has one pure function for each promise. Nothing here changes what the system does.
"""
