"""Commands that run workers or give them work: run, deploy, web, enqueue, trigger.

What changes work that exists is in `changing`; `serve` has what these commands start.
"""
