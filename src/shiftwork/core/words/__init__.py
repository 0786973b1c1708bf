"""Words for people: durations, numbers, and text from elsewhere made harmless."""
