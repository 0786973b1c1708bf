"""One machine's part: its instances, their leases, its processes, its neighbours; how it joins, and how it stops.

`Node` puts everything together. What it does for all nodes while it leads is in `leader`; what a single instance does
with its jobs is in `claiming`.
"""
