"""One instance of a pool and its jobs: claim as many as there is room for, start them, settle how they ended.

How a function is called is for `running`, and how outcomes reach the store for `outcomes`. How many instances there
are, and on what process each has its runner, is for `node`.
"""
