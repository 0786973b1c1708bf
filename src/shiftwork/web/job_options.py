"""The options of a job in the body of a request."""

from typing import Annotated

from msgspec import Meta, field

from shiftwork.core.model.jobs import JobPriority
from shiftwork.core.options.value_checks import LONGEST_TAG, MOST_TAGS, SHORTEST_TIMEOUT, TAG_PATTERN
from shiftwork.handles.options import JobOptions
from shiftwork.views.shapes.values import PriorityName
from shiftwork.web.routing import Body, Id

Seconds = Annotated[float, Meta(gt=0, le=315_360_000)]
Tag = Annotated[str, Meta(min_length=1, max_length=LONGEST_TAG, pattern=TAG_PATTERN)]


class OptionsBody(Body, frozen=True, kw_only=True):
    """How a job differs from other jobs of its worker."""

    priority: PriorityName | None = None
    unique_key: Id | None = None
    max_retries: Annotated[int, Meta(ge=0, le=1_000_000)] | None = None
    """Retries, instead of the worker's."""
    timeout_seconds: Annotated[float, Meta(ge=SHORTEST_TIMEOUT, le=315_360_000)] | None = None
    """How long a run may take, instead of the worker's."""
    expires_seconds: Seconds | None = None
    """The job is cancelled if it has not started this long after it is due."""
    tags: Annotated[list[Tag], Meta(max_length=MOST_TAGS)] = field(default_factory=list)


def options_in(body: OptionsBody) -> JobOptions:
    """Return the options in a body."""
    return JobOptions(
        priority=JobPriority[body.priority.upper()] if body.priority else None,
        unique_key=body.unique_key,
        max_retries=body.max_retries,
        timeout_seconds=body.timeout_seconds,
        expires_seconds=body.expires_seconds,
        tags=body.tags,
    )
