"""What a job's record is made of where it is kept in columns: the stores that do so read it in this order."""

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
"""All of a record but its attempts."""
