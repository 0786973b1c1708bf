"""What shiftwork reports to other systems: traces."""
