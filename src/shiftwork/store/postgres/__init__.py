"""The store in a PostgreSQL database, for processes on many machines.

Each module here has one part of the contract, under the same name as in the other stores: add, claim, finish, lease,
lead, flows, durable, docs, find, amend, stats, events, restore. `rows` is how jobs are written and read, `store` the
class. What must happen atomically is one function of the database: functions/ has them, in files with the same names,
and queries.sql has the statements that call them. Connections, migrations and errors of PostgreSQL are in `server`.
"""
