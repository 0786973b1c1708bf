"""What is wrong now, what can be done about it, and when a job will start."""
