"""Why a worker is disabled, as a sentence where no person has written the reason.

Stores keep the text alone. The ones of ours are made again from the state, and are the same text.
"""

from typing import Final

from shiftwork.core.model.workers import WorkerState
from shiftwork.sentences import plain, sentence

BY_HAND: Final = sentence("disabled by hand")
DISABLED_BY_HAND: Final = plain(BY_HAND)
"""Why a worker is disabled, if the person who did it gave no reason."""
AT_REGISTRATION: Final = sentence("registered with enabled=False")
REGISTERED_DISABLED: Final = plain(AT_REGISTRATION)
"""Why a worker is disabled that was registered so."""


def reason_of(state: WorkerState) -> str | None:
    """Return why a worker is disabled."""
    failed = sentence("{n} runs in a row failed, the last one with {error}", n=state.failures, error=state.last_error)
    return next((known for known in (BY_HAND, AT_REGISTRATION, failed) if known == state.reason), state.reason)
