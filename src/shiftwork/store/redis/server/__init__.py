"""The server under the store: its address, connections, bells and errors.

Here are sockets, logins, redirections of a cluster, lost connections, and which commands may be sent again. What a
script does with jobs is not here but beside this folder: of the scripts, only name, text and digest are known here.
"""
