"""What a running function may know and do: its `Context`, steps, waits, transactions, log lines, and middleware.

Everything here belongs to one run, and stands on protocols (`current_run`): how a run is started, watched and stopped
is for `running`, and what becomes of its job for `claiming` and `outcomes`.
"""
