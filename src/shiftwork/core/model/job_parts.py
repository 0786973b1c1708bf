"""What a job may have beside its payload: needs of a flow, steps and signals of a durable function, options of its own.

Values only. The rules are in `core.jobs.needs`, `core.jobs.durable_functions` and `core.jobs.run_options`.
"""

from typing import Final

from msgspec import Struct, msgpack

NEED_WHATEVER: Final = 1
NEED_ALONE: Final = 2
NEED_BROKEN: Final = 4
"""The bits of the number in which a store keeps what it knows of a `Need` beside its id."""


class Need(Struct, frozen=True, array_like=True, gc=False):
    """A job that must end before another one may start."""

    id: str
    whatever: bool = False
    """Whether any end will do. Otherwise the job must complete."""
    alone: bool = False
    """Whether only that job counts, and not the jobs that it adds while it runs."""
    broken: bool = False
    """Whether that job cannot complete unless a person retries one: see `core.jobs.needs`. Stores keep it."""


class Step(Struct, frozen=True, array_like=True, gc=False):
    """A part of a durable function that has been run. A later run of the job gets its result back."""

    number: int
    """Its place among the steps of the job, from 1."""
    name: str
    result: bytes
    started_at: float
    ended_at: float


class Signal(Struct, frozen=True, array_like=True, gc=False):
    """A value that was sent to a job, which has not taken it yet."""

    name: str
    value: bytes
    at: float


class StepPage(Struct, frozen=True):
    """Steps of a job that follow each other, as a run of it reads them."""

    steps: list[Step]
    more: bool = False
    """Whether the job has later ones."""


class SeenStep(Struct, frozen=True, kw_only=True, gc=False):
    """A step as people see it."""

    number: int
    name: str
    result: bytes
    """The beginning of its result."""
    size: int
    """How many bytes the result has."""
    started_at: float
    ended_at: float


class SeenSignal(Struct, frozen=True, kw_only=True, gc=False):
    """A signal as people see it."""

    name: str
    value: bytes
    """The beginning of its value."""
    size: int
    """How many bytes the value has."""
    at: float


class SeenParts(Struct, frozen=True, kw_only=True):
    """What a job has accumulated, as people see it: numbers and beginnings."""

    steps: list[SeenStep] = []
    """The newest steps."""
    signals: list[SeenSignal] = []
    """The first signals that it has not taken, in the order in which they were sent."""
    step_count: int = 0
    step_bytes: int = 0
    signal_count: int = 0
    signal_bytes: int = 0


class Wait(Struct, frozen=True, array_like=True, gc=False):
    """What a job that was handed back waits for: the `nth` signal with this name among those that it has not taken."""

    name: str
    nth: int


class Input(Struct, frozen=True, array_like=True, gc=False):
    """Where in the payload the result of another job belongs."""

    job: str
    path: tuple[str | int, ...]


class FlowFailure(Struct, frozen=True, array_like=True, gc=False):
    """A job of a flow that is dead or cancelled, as a job that runs in spite of that sees it: `ctx.flow_failures`."""

    worker: str
    job_id: str
    error: str
    """Its last error, in one line; the reason if it was cancelled. Empty if there is none."""


class RunOptions(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What only the run of a job reads. Stores keep it as bytes (msgpack), as they keep payloads."""

    max_retries: int | None = None
    timeout_seconds: float | None = None
    inputs: tuple[Input, ...] = ()
    needs: tuple[str, ...] = ()
    """The jobs it was added to wait for, met or not: to draw the flow."""
    whatever: bool = False
    """Whether any end of one of these will do, so that its function may ask what failed."""
    parent: str | None = None
    """The job that added it to the flow while it ran."""

    def packed(self) -> bytes | None:
        """Return the options as stores keep them; None if there are none."""
        return None if self == _NO_RUN_OPTIONS else msgpack.encode(self)


_NO_RUN_OPTIONS: Final = RunOptions()
