"""What is wrong now, what can be done about it, and when a job will start.

`verdict` and `pool_problems` judge facts; they gather none. What is only counted or reported belongs to
`core.observing`, and what decides over the number of slots to `core.scaling`.
"""
