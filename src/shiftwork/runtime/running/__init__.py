"""From a slot to an end: call the function, watch its deadline, show what it is doing, stop it.

A runner returns how a run ended, as a value. It claims nothing, writes nothing to the store, and does not decide what
an end means for the job. Runners in other processes are in `processes`.
"""
