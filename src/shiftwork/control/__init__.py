"""Every command and every question, once, with its audit. Composed of a store, a clock and a registry.

A command belongs here, no matter whether a program, the command line or the web gives it. Nothing here runs a job,
shows anything to people (`views` does) or decides by a rule of its own (`core` does).
"""
