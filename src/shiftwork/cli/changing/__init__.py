"""Commands that change many things at once: jobs by a filter, tokens, and the store as a whole.

A switch of one worker, pool, node or schedule belongs beside the list that shows it, in `looking`.
"""
