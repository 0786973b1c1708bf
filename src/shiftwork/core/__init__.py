"""Pure decisions: no I/O, no clock, no randomness, no asyncio. Time and chance are arguments."""
