"""When something is to run: cron expressions, intervals and zones, and schedules that are kept as data.

Whether a job that is due may start belongs to `core.workers`; when one is tried again, to `core.jobs.retry`.
"""
