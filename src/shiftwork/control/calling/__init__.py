"""Calls from programs with or without an event loop, and from forked processes."""
