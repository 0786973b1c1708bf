"""Storms: real nodes and servers under faults, recorded, judged by the history checker, and drawn.

`programs/shop` is the app, `client` gives it work, `person` changes it, `places` are its stores, `faults` harm it,
`storm` puts them together, `moving_storm` moves its work from one store to another, `report` draws what happened, and
`night` adds up many storms. `python -m tests.storms --help` runs them by hand.
"""
