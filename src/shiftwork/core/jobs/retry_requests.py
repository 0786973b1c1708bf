"""What a function raises to decide on its own next attempt, instead of leaving that to its worker's policy.

    raise GiveUp("the customer is gone")     dead at once, whatever retries are left
    raise RetryAfter(30)                     failed, and due again in 30 seconds; the attempt counts
    raise Snooze(30)                         handed back for 30 seconds; the attempt does not count

They are requests and not errors of shiftwork, so they are outside the tree of `shiftwork.errors`.
"""

from shiftwork.core.words import Duration, seconds_of
from shiftwork.errors import ConfigurationError


class GiveUp(Exception):  # noqa: N818 - a request, not an error
    """Make the job dead at once: another attempt would not help."""


class RetryAfter(Exception):  # noqa: N818 - as above
    """Fail this attempt, and try again after this time, if the worker has retries left."""

    def __init__(self, seconds: Duration, reason: str = "") -> None:
        super().__init__(seconds, reason)
        self.seconds: float = seconds_of("RetryAfter", seconds)
        self.reason = reason

    def __str__(self) -> str:
        return self.reason or f"again in {self.seconds:g} s"


class Snooze(Exception):  # noqa: N818 - as above
    """Hand the job back until this time has passed, without counting the attempt."""

    def __init__(self, seconds: Duration) -> None:
        super().__init__(seconds)
        self.seconds: float = seconds_of("Snooze", seconds)
        if self.seconds == 0:
            raise ConfigurationError("Snooze needs a time above 0: the job would start again and again without a pause")

    def __str__(self) -> str:
        return f"for {self.seconds:g} s"
