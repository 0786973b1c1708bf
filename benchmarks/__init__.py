"""Benchmarks: shiftwork beside a peer and beside the bare server, all in one run. `make bench` runs them.

- `__main__`: options, the order of the runs, progress
- `plan`: what is measured, how much of it, and the goals
- `places`: the servers, started here, and an empty place on them for every run
- `child`: one measurement of one subject, in a process of its own
- `measures`: how each thing is measured, the same for every subject
- `subjects`: shiftwork, the peer, and the least that a correct queue needs on each store
- `report`: the tables
- `dashboard`: what it costs to look; only measured when it is asked for
"""
