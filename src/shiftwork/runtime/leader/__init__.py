"""What one node does for all: schedules, recovery, the plan and the history."""
