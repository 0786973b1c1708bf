"""Integrations with frameworks: each is a package of its own, small, and the only one that imports its framework.

Nothing that shiftwork itself needs belongs here, and no integration knows another.
"""
