"""The whole system in one thread and in virtual time: nodes, their processes, clients and faults, all from one seed.

The app, the runtime and the core are the real ones. What is simulated is what they stand on (`ground`), and around them
what starts, uses and disturbs them. `drawing` makes an episode of a seed, `cluster` plays it, `judged` judges it.
What pools would do with a day of traffic, without nodes and faults, belongs in `sim`; what a history proves, in
`history`.
"""
