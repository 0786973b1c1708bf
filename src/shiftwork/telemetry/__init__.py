"""What shiftwork tells other systems of itself."""
