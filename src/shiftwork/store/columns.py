"""The columns of a job's record, in the order in which the SQL stores read them."""

from typing import Final

COLUMNS: Final = (
    "id",
    "worker",
    "pool",
    "status",
    "payload",
    "priority",
    "head_start",
    "run_at",
    "created_at",
    "cause",
    "attempt",
    "crashes",
    "fence",
    "instance",
    "started_at",
    "ended_at",
    "unique_key",
    "key",
    "key_limit",
    "parked",
    "cancelling",
    "result",
    "error",
    "progress",
    "trace",
    "keep_until",
)
"""Every field of a `JobRecord` except its attempts."""
