"""Child processes, on both sides of the socket: start one, give it runs, notice its death, look into it, end it.

The node's side begins with `remote_runner`, the child's with `child_process`. `started_process` notices a death and
ends a process, `post_mortem` says what it means for the runs; `process_watch` measures a process while it lives. What a
child imports costs memory in every process: modules of its side import none of the node's. How many processes there are
is for `node`.
"""
