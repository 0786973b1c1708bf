"""Benchmarks: shiftwork, a comparable library and the bare server, all in one run. `make bench` runs them.

- `__main__`: options, the order of the runs, progress
- `plan`: what is measured, how much of it, and the goals
- `places`: the servers, started here, and an empty store on them for every run
- `child`: one measurement of one subject, in its own process
- `measures`: how each thing is measured, the same for every subject
- `subjects`: shiftwork, the peer, and the minimum that a correct queue needs on each store
- `report`: the tables
- `dashboard`: what looking costs; only measured on request
"""
