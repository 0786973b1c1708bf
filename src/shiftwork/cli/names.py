"""Names in filters: one that does not exist is an error that names the nearest, not an empty list."""

from shiftwork.control.control import Control


async def refuse_unknown(
    control: Control, *, worker: str | None = None, pool: str | None = None, flow: str | None = None
) -> None:
    """Raise if there is no such worker, pool or flow. For a filter that found nothing: jobs outlive their worker."""
    if worker is not None:
        await control.workers.get(worker)
    if pool is not None:
        await control.pools.get(pool)
    if flow is not None:
        await control.flows.status(flow)
