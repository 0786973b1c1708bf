"""An app to begin with: replace it by yours."""

from shiftwork import WorkerOrchestrator

app = WorkerOrchestrator()  # SHIFTWORK_STORE names the store


@app.task
def greet(name: str) -> str:
    """Return a greeting: `docker compose exec node shiftwork enqueue greet name=Ada`."""
    return f"Good morning, {name}"
