"""When something is to run: cron, intervals, zones, and schedules that are kept as data."""
