"""The app: what people declare, its composition, its lifecycle in this process, and how it is tested.

`declarations` has what people write (`@app.task`, `@app.worker`, `@app.on`), `registration` the checks of it.
Commands and questions are in `control`, running jobs is in `runtime`: `app` only puts them together.
"""

from shiftwork.app.orchestrator import WorkerOrchestrator

__all__ = ["WorkerOrchestrator"]
