"""What people hold: workers, calls, jobs and flows, and how arguments and results become bytes.

No store is called here. A handle asks the `control` that it was given.
"""
