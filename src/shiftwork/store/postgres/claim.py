"""Claiming: which jobs an instance gets.

If no worker of the pool has gates, one statement starts the first jobs by rank (functions/claim.sql). Otherwise a short
transaction of two round trips locks the workers that gates tie together, reads the facts, lets `core.workers.admission`
choose, and starts the chosen jobs (functions/claim_with_gates.sql): the rules of gates are in one place for all stores.
"""

from collections.abc import Collection
from typing import Any, Final

from msgspec import json

from shiftwork.core.model.jobs import SECONDS_A_DAY, Claimed
from shiftwork.core.workers.admission import Choice, Head, choose
from shiftwork.store.postgres import arrays, rows
from shiftwork.store.postgres.facts import decode
from shiftwork.store.postgres.rows import StartedRow
from shiftwork.store.postgres.server.statements import PostgresSession
from shiftwork.store.protocol import Claims
from shiftwork.store.worker_digest import digest

NO_CHOICE: Final = Choice([], {}, {}, None)
_ahead = json.Decoder(dict[str, list[tuple[float, str, float]]])


STALE: Final = "stale"
"""The cause in the row that `shiftwork.claim` returns if the store has another edition."""
UNKNOWN_DIGEST: Final = "unknown"
"""The cause in that row if the store does not know the digest: the workers under the digest that was sent."""
CREW_SECONDS: Final = 7 * SECONDS_A_DAY
"""How long the store keeps a digest."""


class Claimer:
    """Claims for one store. Remembers which pools had gates, so that it first tries the way that will probably do."""

    def __init__(self) -> None:
        self._gated: set[str] = set()

    async def claim(
        self,
        session: PostgresSession,
        instance: str,
        pool: str,
        *,
        n: int,
        now: float,
        workers: Collection[str],
        edition: str | None,
    ) -> Claims:
        """Start up to `n` jobs of these workers in this pool for the instance, unless the store has another edition."""
        if n <= 0 or not workers:
            return Claims([])
        workers_digest = digest(workers)
        names = arrays.texts([] if workers_digest else list(workers))
        args = (session.namespace, instance, pool, n, now, names, edition, workers_digest)
        claims = await self._claim(session, pool, args)
        if claims is None:
            await session.rows(
                "introduce_crew", (session.namespace, workers_digest, arrays.texts(list(workers)), now, CREW_SECONDS)
            )
            claims = await self._claim(session, pool, args)
        return claims or Claims([])

    async def _claim(self, session: PostgresSession, pool: str, args: tuple[Any, ...]) -> Claims | None:
        """Claim. None if the store does not know the digest."""
        if pool not in self._gated:
            found = _started(await session.rows("claim", args))
            if not found or found[0].id is not None:
                return Claims(_claimed(found, pool))
            if found[0].cause == UNKNOWN_DIGEST:
                return None
            if found[0].cause == STALE:
                return Claims([], stale=True)
            self._gated.add(pool)
        return await self._choose(session, pool, args)

    async def _choose(self, session: PostgresSession, pool: str, args: tuple[Any, ...]) -> Claims | None:
        namespace, instance, _, n, now, *_ = args
        choice, sent = NO_CHOICE, None
        async with session.quick_transaction():
            known, ahead, stale = await session.row("lock_for_claim", args)
            if known is not None:
                choice = self._chosen(pool, known, ahead, limit=n, now=now)
            if choice.ids:
                started = await session.send("start_chosen", (namespace, instance, pool, now, arrays.texts(choice.ids)))
                sent = started, await session.send("note_starts", _starts(namespace, choice))
        if stale is None:
            return None
        if sent is None:
            return Claims([], choice.next_at, stale=stale)
        started, noted = sent
        session.ring((await noted.fetchall())[0][0])
        return Claims(_claimed(_started(await started.fetchall()), pool), choice.next_at)

    def _chosen(self, pool: str, known: str, ahead: str, *, limit: int, now: float) -> Choice:
        heads = {name: [Head(*head) for head in lane] for name, lane in _ahead.decode(ahead).items()}
        facts = decode(known, heads)
        if heads and all(gates.open for name, gates in facts.gates.items() if name in heads):
            self._gated.discard(pool)
        return choose(heads, facts, limit=limit, now=now)


def _starts(namespace: int, choice: Choice) -> tuple[Any, ...]:
    limited, rate_at = list(choice.rate_at), list(choice.rate_at.values())
    return namespace, arrays.texts(list(choice.started)), arrays.texts(limited), arrays.numbers(rate_at)


def _started(found: list[tuple[Any, ...]]) -> list[StartedRow]:
    return [StartedRow(*row) for row in found]


def _claimed(found: list[StartedRow], pool: str) -> list[Claimed]:
    found.sort(key=lambda row: (row.rank, row.id))
    return [rows.claimed(row, pool) for row in found]
