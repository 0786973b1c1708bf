"""The app: what people declare, its composition, its lifecycle in this process, and how it is tested.

Commands and questions are in `control`, running jobs is in `runtime`: `app` only puts them together.
"""

from shiftwork.app.orchestrator import WorkerOrchestrator

__all__ = ["WorkerOrchestrator"]
