"""One namespace belongs to one app: apps that have no worker in common must not share one.

They would recover each other's jobs without knowing the functions, and resize each other's pools of the same name.
Processes that have a worker in common are one app, perhaps in two versions.
"""

from collections.abc import Collection, Sequence

from msgspec import Struct

from shiftwork.core.beats import InstanceRecord


class Tenant(Struct, frozen=True):
    """A live node that runs workers."""

    node: str
    workers: tuple[str, ...]
    expires_at: float
    """When its last lease ends unless it is renewed."""


def stranger(node: str, workers: Collection[str], instances: Sequence[InstanceRecord], now: float) -> Tenant | None:
    """Return the live node that has no worker in common with this one; of several, the one that started first."""
    if not workers:
        return None
    tenants: dict[str, Tenant] = {}
    for known in sorted(instances, key=lambda known: (known.beat.started_at, known.beat.instance)):
        beat = known.beat
        if beat.node == node or not beat.workers or known.expires_at <= now:
            continue
        so_far = tenants.get(beat.node, Tenant(beat.node, (), known.expires_at))
        names = tuple(sorted({*so_far.workers, *beat.workers}))
        tenants[beat.node] = Tenant(beat.node, names, max(so_far.expires_at, known.expires_at))
    return next((tenant for tenant in tenants.values() if not {*tenant.workers} & {*workers}), None)


def refusal(tenant: Tenant, workers: Collection[str], *, namespace: str, store: str, now: float) -> str:
    """Return the message for the app that started later."""
    where = f"namespace {namespace!r} of {store}" if namespace else store
    return (
        f"{where} is in use by another app: node {tenant.node} runs {_some(tenant.workers)}, and none of the "
        f"workers of this app ({_some(workers)}). Give this app its own store or namespace: "
        'WorkerOrchestrator("sqlite:///other.db") or WorkerOrchestrator(…, namespace="…"), or set SHIFTWORK_NAMESPACE '
        "where it runs. "
        f"If that node is gone, its lease ends in {max(0.0, tenant.expires_at - now):.0f} s; start this app again then."
    )


_SHOWN = 5


def _some(names: Collection[str]) -> str:
    shown = sorted(names)[:_SHOWN]
    return ", ".join(shown) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
