"""From a settled outcome to the store and to people: review, gather, write, then log and publish what followed.

What becomes of a job was decided before (`core.jobs.retry`); here nothing is decided again, except that a job may go to
a node of another version (`refusals`). A failure after the write loses an event or a log line, never a job.
"""
