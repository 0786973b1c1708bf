"""Virtual time: what pools would do with a day of traffic, by their real rules.

Here are scenarios (read, written, varied), the simulation of one, and what follows from many simulations: what breaks
first, which fixed size would be as good, which bounds would be cheaper. It imports `core` and nothing else: no store,
no clock, no process. The rules of scaling themselves are in `core.scaling`; the plan is what they decide, here as in
the leader.
"""
