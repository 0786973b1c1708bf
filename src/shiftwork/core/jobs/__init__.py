"""The rules about jobs: how one moves from status to status, what a run's end makes of it, what it waits for.

What a job *is* stands in `core.model`; how large its values may be, and how they are protected, in `core.values`.
Whether a worker may start a job now belongs to `core.workers`.
"""
