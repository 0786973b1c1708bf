"""Since when a problem has been there, if nothing else says so: since the leader first noticed it.

Most problems come with the time at which they began: a lease that ended, a job that was due, a person's change. Of the
others (dead letters, processes that cannot start, a missing key, …) the leader records when it first saw them; it looks
every few seconds. `since` stays None only where that cannot be known: within seconds of the beginning, before the
leader's next look; while no node leads; where a command has just begun to ask a store that does not answer; and for
findings of the doctor, which are true of the moment in which it looks.
"""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from shiftwork.core.health.problems import Health, Problem, in_order


class Noticed(Struct, frozen=True):
    """When the leader first saw the problems that last."""

    since: dict[str, float] = {}
    """By code and subject, with a space between them."""

    def after(self, problems: Sequence[Problem], now: float) -> "Noticed":
        """The same after another look: with what is new, and without what is gone."""
        seen = {_key(one): one for one in problems}
        return Noticed(
            {
                key: self.since.get(key, now)
                for key, one in sorted(seen.items())
                if key in self.since or one.since is None
            }
        )

    def dated(self, health: Health) -> Health:
        """Return a verdict in which the problems without a time of their own have the one that was noticed."""
        problems = [
            replace(one, since=self.since.get(_key(one))) if one.since is None else one for one in health.problems
        ]
        return Health(health.status, in_order(problems))


def _key(problem: Problem) -> str:
    return f"{problem.code} {problem.subject}"
