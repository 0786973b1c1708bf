"""The values that all rooms speak of: jobs and what changes them, workers and pools, flows, events, docs.

Fields, defaults, limits of their own, and what a value can say of itself. A rule belongs in the folder of its subject
(`jobs`, `workers`, `scaling` …), not here.
"""
