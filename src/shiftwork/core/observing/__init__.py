"""What is counted and reported: beats, statistics, run times, history, events as rows to show, groups of dead jobs.

Facts only, without a verdict: `core.health` judges them, `core.scaling` sizes pools by them.
"""
