"""Benchmarks: shiftwork, comparable libraries and the bare server, all in one run. `make bench` runs them.

- `__main__`: options, the order of the runs, progress
- `plan`: what is measured, how much of it, the peers and their settings, and the goals
- `places`: the servers, started here, and an empty store on them for every run
- `child`: one measurement of one subject, in its own process
- `measures`, `draining`, `wire`: how each thing is measured, the same for every subject
- `serving`, `counts`: processes that run jobs, and how many have run
- `load`: what processes use
- `subjects`: shiftwork, the peers, and the minimum that a correct queue needs on each store
- `depth`: the same rates beside a crowd of jobs or workers
- `report`: the tables; `page`: the same in docs/speed.md, between markers
- `dashboard`: what looking costs; only measured on request

A peer is measured by the Python of its own virtual environment. What a peer's process imports of this package must not
import shiftwork, nor anything else that requirements/peers.in does not have.
"""
