"""What people may write about workers, pools, schedules and jobs: types, checks, and the gates that follow.

Everything here raises a `ConfigurationError` that names the remedy. What an accepted option does while jobs run is a
rule, and belongs to `core.jobs`, `core.workers`, `core.schedules` or `core.scaling`.
"""
