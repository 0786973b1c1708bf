"""Errors over HTTP: `application/problem+json`, with the error's message as the detail."""

import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct
from starlette.responses import Response

from shiftwork import errors
from shiftwork.core.sentences import error_text, sentence
from shiftwork.web.encoding import Encode, as_texts

MEDIA_TYPE: Final = "application/problem+json"

_STATUS: Final[tuple[tuple[type[errors.ShiftworkError], int], ...]] = (
    # The first match counts.
    (errors.UnknownWorkerError, 404),
    (errors.UnknownPoolError, 404),
    (errors.UnknownScheduleError, 404),
    (errors.UnknownNodeError, 404),
    (errors.UnknownBreakerError, 404),
    (errors.UnknownJobError, 404),
    (errors.UnknownFlowError, 404),
    (errors.FlowError, 409),
    (errors.StepError, 409),
    (errors.PayloadTooLargeError, 413),
    (errors.PayloadError, 400),
    (errors.NodeSilentError, 504),
    (errors.JobError, 409),
    (errors.DuplicateNameError, 409),
    (errors.HistoryError, 409),
    (errors.MoveError, 409),
    (errors.ConfigurationError, 400),
    (errors.StoreError, 503),
    (errors.LifecycleError, 503),
)
_TITLES: Final = {
    400: "Bad request",
    401: "Authentication required",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    409: "Conflict",
    413: "Too large",
    415: "Not JSON",
    429: "Too many requests",
    500: "Internal error",
    503: "Not available",
    504: "No reply in time",
}


class ProblemDetails(Struct, frozen=True, kw_only=True):
    """A problem in the form of RFC 9457."""

    type: str
    """What went wrong, for programs: `urn:shiftwork:unknown-worker`."""
    title: str
    status: int
    detail: str
    """What went wrong and what to do about it, in words."""


class Refused(Exception):  # noqa: N818 - it becomes a response
    """A request that is rejected."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = headers


def problem(error: Exception, encode: Encode = as_texts) -> Response:
    """Return the response for an error."""
    if isinstance(error, Refused):
        return _response(encode, error.status, error.detail, _TITLES[error.status], error.headers)
    if isinstance(error, errors.ShiftworkError):
        status = next((status for kind, status in _STATUS if isinstance(error, kind)), 500)
        name = type(error).__name__.removesuffix("Error")
        return _response(encode, status, error_text(error), re.sub("(?<=.)(?=[A-Z])", " ", name))
    return _response(encode, 500, sentence("an unexpected error; see the server's log"), _TITLES[500])


def _response(
    encode: Encode, status: int, detail: str, kind: str, headers: Mapping[str, str] | None = None
) -> Response:
    code = kind.lower().replace(" ", "-")
    body = ProblemDetails(type=f"urn:shiftwork:{code}", title=sentence(_TITLES[status]), status=status, detail=detail)
    return Response(encode(body), status, dict(headers or {}), MEDIA_TYPE)
