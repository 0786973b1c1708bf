"""What `shiftwork run` runs: the service, the processes it starts, loading an app, logging, probes and the exit.

It runs an app that it does not import itself: only the processes that it starts do. What a node does is in `runtime`.
"""
