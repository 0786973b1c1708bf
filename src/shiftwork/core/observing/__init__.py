"""What is counted and reported: beats, statistics, run times, history, rows of events, groups of dead jobs.

Facts only, without a verdict: `core.health` judges them, `core.scaling` sizes pools by them.
"""
