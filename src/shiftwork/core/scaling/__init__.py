"""How many slots each pool has, and on which nodes. Facts in, a plan with its reasons out.

From `backlog` and `demand` (what there is to do) over `size` and `forecast` (how many slots) to `placement` and `plan`
(where). What a node does with its part of the plan belongs to `runtime`, what the numbers mean to people to
`core.health`.
"""
