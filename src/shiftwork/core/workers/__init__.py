"""Whether a worker may run a job now: its gates, dependencies, breaker and state."""
