"""From an end to the store: decide, gather, write, and report what followed."""
