"""The layout of what Python and Lua exchange: the state of a job, its flags, and the order of columns.

Lua has the names in `NUMBERS`, which are replaced by numbers when a script is loaded. The dictionary of keys is in
`parts/keys.lua`, and `parts/job_state.lua` describes the state. Nothing here may change: stores have written it.
"""

import struct
from typing import Final

from shiftwork.store.redis.docs import MOST_DIGITS

STATE: Final = struct.Struct("<BHHIIddddd")
"""The state of a job, before the name of its instance."""


class Flag:
    """What the flags of a state say about a job."""

    PARKED: Final = 1
    CANCELLING: Final = 2
    KEYED: Final = 4
    UNIQUE: Final = 8
    HAS_ERROR: Final = 16
    HAS_RESULT: Final = 32
    HAS_PROGRESS: Final = 64
    EXPIRES: Final = 128
    """It may expire. Where EXPIRES is not set, the time in its info is over."""
    WAITS: Final = 256
    """It waits for a signal."""
    IN_FLOW: Final = 512
    TAGGED: Final = 1024
    DURABLE: Final = 2048
    """It has steps or signals."""
    NEEDS: Final = 4096
    """It needs other jobs, or once did."""
    NEEDED: Final = 8192
    """Another job waits for it, or once did."""


INFO: Final = (
    *("worker", "pool", "priority", "head_start", "created_at", "cause", "unique_key", "key", "key_limit", "trace"),
    *("options", "expires_at"),
)
"""What never changes about a job. Jobs that have neither options nor an expiry lack the last two."""
NEW: Final = (
    *("id", "worker", "pool", "run_at", "head_start", "unique_key", "key", "key_limit"),
    *("created_at", "info", "extra"),
)
"""The columns of `add`."""
OUTCOME: Final = (
    *("id", "fence", "worker", "pool", "status", "ended_at", "run_at", "attempt", "crashes", "verdict"),
    *("disable_after", "result", "error", "keep_until", "cause", "report", "waited", "marks", "wait", "moves"),
)
"""The columns of `finish`."""

UNKNOWN: Final = -1
"""What scripts return instead of the status of a job that does not exist."""
FULL: Final = -2
"""What `send` returns instead of a status if there is no room."""

NUMBERS: Final[dict[str, int]] = {
    **{f"FLAG_{name}": flag for name, flag in vars(Flag).items() if name.isupper()},
    **{f"COLUMN_INFO_{name.upper()}": n for n, name in enumerate(INFO, 1)},
    **{f"COLUMN_NEW_{name.upper()}": n for n, name in enumerate(NEW, 1)},
    **{f"COLUMN_OUTCOME_{name.upper()}": n for n, name in enumerate(OUTCOME, 1)},
    "STATUS_UNKNOWN": UNKNOWN,
    "STATUS_FULL": FULL,
    "LIMIT_DIGITS": MOST_DIGITS,
}
"""By name, as Lua writes it. Lua counts columns from one."""
