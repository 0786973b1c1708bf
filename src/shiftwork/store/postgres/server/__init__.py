"""The server under the store: its address, connections, notifications, errors, schema and installed functions.

Here are the queues in which calls wait for a connection, and what happens when one breaks. No module here knows jobs,
or what a statement means: that belongs into the folder above, which imports this one and is never imported here.
"""
