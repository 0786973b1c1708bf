"""Commands that show what there is, and the small switches that belong to each of these lists.

Nothing here runs a job or starts a process; changes of many jobs, or of the store, belong in `changing`.
"""
