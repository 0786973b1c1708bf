"""Enqueue, wait and ask from code without an event loop: Flask, Django, a script. It works from any thread."""

from shiftwork import ResultTimeoutError, WorkerOrchestrator

app = WorkerOrchestrator("memory://")


@app.task
def invoice(order: int) -> str:
    return f"invoice-{order}.pdf"


def view(order: int) -> tuple[str, int]:
    """Respond as a view of Flask does."""
    job = invoice.enqueue_blocking(order=order)
    try:
        return job.blocking.result(timeout_seconds=10), 200
    except ResultTimeoutError:
        return f"/jobs/{job.id}", 202  # the job continues


def status_view(job_id: str) -> dict[str, str | None]:
    job = app.blocking.get_job(job_id)
    return {"status": job.status.value, "error": job.error}


def main() -> None:
    app.blocking.start()  # jobs run in a background thread; leave it out if `shiftwork run` runs them
    print(view(7))
    (job,) = app.blocking.find_jobs(worker="invoice", limit=1)
    print(status_view(job.id))
    app.blocking.stop()


if __name__ == "__main__":
    main()
