"""The file under the store: who opens it, which thread and process may write, how other processes are woken.

Here are connections, transactions, threads, locks, checkpoints, permissions and errors of SQLite. What an operation
does with jobs is not here but beside this folder; the session knows the tables that every operation counts in.
"""
