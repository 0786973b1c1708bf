"""When something is to run: cron expressions, intervals and zones, and schedules that are kept as data.

`fire_times` decides what is due, and when the next run is; `cron` is the calendar and what daylight saving does to it,
`timing` the values and the zones, `stored` the schedules that are data.

Whether a job that is due may start belongs to `core.workers`; when one is tried again, to `core.jobs.retry`.
"""
