"""What one node does for all: it fires schedules, rescues lost jobs, plans the pools, records the history.

Everything here is safe if two nodes do it at once. What every node does for itself, such as renewing leases or watching
its neighbours, is in `node`.
"""
