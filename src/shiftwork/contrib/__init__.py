"""Integrations with frameworks: each is a package of its own, small, and the only one that imports its framework."""
