"""Where all state lives: the contract of every store (`protocol`), one folder for each store, and what stores share.

In every store's folder the same part of the contract has the same file name: add, claim, finish, lease (beat, leave,
hold, drop), lead (promote, reap, prune), flows, durable, docs, find, amend, stats, events, restore; `rows` is how a job
is kept, `facts` what an admission looks at, `store` the class. `abilities` has what a store may do beside the contract,
`sealed` a layer around any store.

Here are also URLs, bells, clocks, and what is read and changed through any store: docs, schedules, failures of flows.
No rule is made here: what becomes of a job is decided in `core`, and who calls a store when, in `runtime` and
`control`.
"""
