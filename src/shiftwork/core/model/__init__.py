"""The values that all rooms speak of: jobs, outcomes, workers, pools, flows, events, docs.

A rule about them belongs in the folder of its subject (`jobs`, `workers`, `scaling` …), not here.
"""
