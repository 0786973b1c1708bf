"""The file under the store: who opens it, which thread and process may write, how other processes are woken.

    store_threads ── the writer's, the reader's and the doorbell's thread: when they start and end
      ├── calls ── how a call gets from an event loop to a thread, and its result back
      ├── call_servers ── the transaction around calls: in groups for the writer, one by one for the reader; who
      │     │                 writes next among processes; and whether the path still leads to the open file
      │     ├── sqlite_session ── what operations work through: statements, and what is remembered between them
      │     └── checkpoint ── how the log stays short
      ├── doorbell ── how processes wake each other
      └── schema, modes, driver, faults ── the tables, the permissions, the connection, the errors

What an operation does with jobs is not here but beside this folder; the session knows the tables that every operation
counts in.
"""
