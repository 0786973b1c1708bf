"""Whether a worker may run a job now: its gates, its breaker, its state, and which definitions the store holds.

`admission` decides which jobs start together. What becomes of a job afterwards belongs to `core.jobs`; what people may
write about a worker, to `core.options`.
"""
