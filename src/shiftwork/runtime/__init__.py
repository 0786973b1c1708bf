"""Acts: event loops, threads and processes around the pure core.

It is given a `Registry` (functions, configurations, gates) and a store, and does not know the app. `core` decides: the
facts for that are gathered here, and what was decided is done here.

The nine stages of a run, in order, and the file of each:

    1 claim     claiming/job_claimer.py      `JobClaimer.claim`: as many jobs as there are slots, and a few ahead
    2 start     claiming/runs.py             `Runs.start`: make a run of the job, and pass it to the instance's runner
    3 decode    running/execute.py           `run_async`, `run_sync`: decode the payload into the function's arguments
    4 surround  context/middleware.py        `await_within`, `call_within`: what the app puts around each run
    5 run       running/local_runner.py      `LocalRunner`: the function, in a task or a thread, with its `Context`
    6 end       running/execute.py           `End`: returned, raised, timed out, cancelled … as a value
    7 settle    claiming/runs.py             `JobEnder.settle`: what becomes of the job, by `core.jobs.retry.settle`
    8 write     outcomes/outbox.py           `Outbox`: outcomes in batches, retried until the store accepts or rejects
    9 report    outcomes/reporter.py         `Reporter.written`: the log, events, hooks, the states of workers

Where jobs run in a process of their own, stages 3 to 6 take place there. Between 2 and 3 the node gives the run to the
process (`processes/remote_runner.py`, `processes/handover.py`), which takes it (`processes/child_process.py`) and
sends its end back.

At any stage a run may have to stop: at its deadline (`Deadlines` in `claiming/runs.py`), when a person cancels it, when
the lease is in danger (`node/lease_renewer.py`), and when the node stops (`node/node.py`).
"""
