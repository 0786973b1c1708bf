"""Where all state lives: the contract of every store (`protocol`), one folder for each store, and what stores share.

In every store's folder the same part of the contract has the same file name: add, claim, finish, lease, lead, flows,
durable, docs, find, amend, stats, events, restore; `rows` is how a job is kept, `store` the class. Here are the bells,
the clock, the reading of docs and schedules through any store, and URLs. No rule is made here: what becomes of a job is
decided in `core`, and who calls a store when, in `runtime` and `control`.
"""
