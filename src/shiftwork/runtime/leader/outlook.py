"""The leader's look ahead: the floors that yesterday's curve gives the pools, once a minute."""

from collections.abc import Callable, Mapping, Sequence

from shiftwork.core.model.worker import PoolConfig
from shiftwork.core.observing.history import MINUTE, Hour
from shiftwork.core.scaling.forecast import floors_ahead
from shiftwork.core.scaling.size import Floor


class Outlook:
    """Computes the floors from the hours that the historian has in memory: the store is not asked."""

    def __init__(self, hours: Callable[[], Sequence[Hour]]) -> None:
        self._hours = hours
        self._made_of: object = None
        self._floors: Mapping[str, Floor] = {}

    def floors(self, pools: Mapping[str, PoolConfig], now: float) -> Mapping[str, Floor]:
        """Return the floor of each pool that yesterday's curve raises now."""
        hours = self._hours()
        made_of = int(now // MINUTE), hours[-1].number if hours else None, frozenset(pools)
        if made_of != self._made_of:
            moments = sorted((moment for hour in hours for moment in hour.moments), key=lambda one: one.at)
            self._floors, self._made_of = floors_ahead(pools, moments, now), made_of
        return self._floors
