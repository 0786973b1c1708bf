"""Every command and every question, once, with its audit. Composed of a store, a clock and a registry."""
