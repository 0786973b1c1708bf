"""The lines of a recorded history: what each process asked of the store, what it was answered, and what it ran.

A history is a folder with one file for each process, and a file has one JSON array on each line. Its first element is
the kind of the line, its second when it was written, by the machine's monotonic clock (in a simulation: virtual time).
So the lines of all processes of one machine can be put in order, and of two calls it is known that one took effect
before the other if it was answered before the other was asked. Within a file they are nearly in that order: `Ended` may
come a little later than its time says, and so may the lines of other threads. A line may begin with spaces, the last
one may be cut, and zeros may follow it.

A process writes `Asked` before a call leaves it, and `Answered` or `Failed` when the call is over. A call with neither
may have happened or not: its process died, or still waits. So does a call that failed with `maybe`. What is recorded of
a call stands in `Args` and `Answer`: ids, numbers and times, never payloads, results or texts of people.
"""

from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

VERSION: Final = 2
"""The version of this format. A reader rejects others."""
RECORDING_ENDED: Final = "recording ended"
"""The kind of the `Fault` that is the last line of a process whose disk was full: what it did then is not known."""

Call = Literal[
    "add", "claim", "finish", "beat", "keep_step", "extend", "send", "promote", "reap", "prune", "leave",
    "hold", "drop", "put", "erase", "switch", "restore", "take_over", "amend", "rewrite", "results",
]  # fmt: skip
"""The calls that are recorded: those that change something, and what jobs of flows are given. `core` has the rules,
`store.protocol` the obligations."""


class HistoryLine(Struct, frozen=True, array_like=True, gc=False):
    """One line. `at` is the machine's monotonic clock."""

    at: float


class Opened(HistoryLine, frozen=True, array_like=True, tag="opened", gc=False):
    """The first line of a file."""

    version: int
    process: str
    """Which process this is, unique in the history: its pid and a random word."""
    pid: int
    now: float
    """The epoch time at `at`, by this process's clock."""
    store: str = ""
    """The store's URL, without its password."""
    seed: int | None = None
    """The seed of the simulation that made this history."""


class Defined(HistoryLine, frozen=True, array_like=True, tag="defined", gc=True):
    """A worker or a pool that this process serves, as it was registered: its `WorkerConfig` or `PoolConfig`."""

    kind: Literal["worker", "pool"]
    name: str
    config: dict[str, Any]


class Asked(HistoryLine, frozen=True, array_like=True, tag="asked", gc=True):
    """A call that is about to leave this process."""

    number: int
    """Which call of this process it is, from 1."""
    call: Call
    now: float | None
    """The `now` of the call, if it has one."""
    args: Any
    """See `Args`."""


class Answered(HistoryLine, frozen=True, array_like=True, tag="answered", gc=True):
    """The store's answer to a call."""

    number: int
    answer: Any
    """See `Answer`."""
    order: int | None = None
    """Which call of all processes took effect when: a number that grows, if the store's own order is known."""


class Failed(HistoryLine, frozen=True, array_like=True, tag="failed", gc=False):
    """A call that raised."""

    number: int
    error: str
    """The class of the error."""
    maybe: bool
    """Whether the call may have happened: so it is unless the contract of the call says otherwise of the error."""


class Began(HistoryLine, frozen=True, array_like=True, tag="began", gc=False):
    """A function is about to be called. Written by the process that calls it, before it decodes the payload.

    There is one for each run, so it says only which: the answer to the claim has the rest.
    """

    job: str
    fence: int


class Ended(HistoryLine, frozen=True, array_like=True, tag="ended", gc=False):
    """A function has returned, or raised. Without this line, its process died in it, or it goes on."""

    job: str
    fence: int
    kind: str
    """How: an `EndKind`."""


class Stepped(HistoryLine, frozen=True, array_like=True, tag="stepped", gc=False):
    """The function of a step of a durable function is about to be called."""

    job: str
    fence: int
    step: int
    name: str


class Fault(HistoryLine, frozen=True, array_like=True, tag="fault", gc=False):
    """What a storm or a simulation did to the system. For the picture; no rule depends on it."""

    kind: str
    """For example "kill", "freeze", "thaw", "outage", "lost reply", "restart"; see also `RECORDING_ENDED`."""
    what: str
    """For example the node or the process that it was done to."""
    seconds: float | None = None
    """For how long, if it is not a moment."""


class Expected(HistoryLine, frozen=True, array_like=True, tag="expected", gc=False):
    """What a harness knows beyond the calls: at the end of a history, that the system was left to come to rest."""

    at_rest: bool
    """Whether every job that could run was given the time to: then a job that has not ended is lost."""
    until: float
    """The epoch time until which schedules were followed."""


AnyLine = Opened | Defined | Asked | Answered | Failed | Began | Ended | Stepped | Fault | Expected


# ── what is recorded of each call ────────────────────────────────────────────────────────────────────────────────────
# Arrays, in the order of the fields below; `Args` maps a call to what it takes, `Answer` to what it returns.


class AddedJob(Struct, frozen=True, array_like=True, gc=False):
    """A job of `add`, `extend` and, without needs, `restore`."""

    id: str
    worker: str
    pool: str
    run_at: float
    head_start: float
    unique_key: str | None = None
    key: str | None = None
    key_limit: int = 1
    cause: str = "enqueued"
    expires_at: float | None = None
    flow: str | None = None
    needs: tuple[tuple[str, bool], ...] = ()
    """The ids that it needs, each with whether any end will do."""
    parent: str | None = None
    inputs: tuple[str, ...] = ()
    """The jobs whose results belong into its payload."""
    max_retries: int | None = None
    """The job's own limit, if it has one."""


class ClaimedJob(Struct, frozen=True, array_like=True, gc=False):
    """A job that `claim` handed out, or that `reap` took from a lost instance."""

    id: str
    worker: str
    fence: int
    attempt: int
    crashes: int
    run_at: float
    instance: str | None = None
    """Of `reap`: the instance that lost it."""
    begun: float | None = None
    """Of `reap`: when the record says that the lost run started."""


class FinishedJob(Struct, frozen=True, array_like=True, gc=False):
    """An outcome that is handed to `finish`. Of a completed job, there is nothing beyond the checksum."""

    id: str
    fence: int
    status: str
    attempt: int
    crashes: int
    verdict: str
    result: int | None = None
    """A checksum (CRC-32) of the result."""
    report: str | None = None
    """How the attempt ended, an `EndKind`, if it is kept as one that failed."""
    run_at: float = 0.0
    keeps_rank: bool = True
    wait: str | None = None
    """The name of the signal that the job waits for."""


class AddArgs(Struct, frozen=True, array_like=True, gc=False):
    """`add`. Returns for each job its id and whether it is new."""

    jobs: list[AddedJob]


class AddAnswer(Struct, frozen=True, array_like=True, gc=False):
    """What became of each job: its id, and whether it is new. For `extend`: None if the parent no longer runs."""

    added: list[tuple[str, bool]] | None


class ClaimArgs(Struct, frozen=True, array_like=True, gc=False):
    """`claim`."""

    instance: str
    pool: str
    n: int


class ClaimAnswer(Struct, frozen=True, array_like=True, gc=False):
    """The jobs handed out, in the order in which they were."""

    jobs: list[ClaimedJob]


class FinishArgs(Struct, frozen=True, array_like=True, gc=False):
    """`finish`."""

    outcomes: list[FinishedJob]


class FinishAnswer(Struct, frozen=True, array_like=True, gc=False):
    """Which outcomes were accepted, in their order, and which workers were disabled."""

    accepted: list[bool]
    disabled: list[str]


class BeatArgs(Struct, frozen=True, array_like=True, gc=False):
    """`beat`: the instances."""

    instances: list[str]
    ttl: float


class BeatAnswer(Struct, frozen=True, array_like=True, gc=False):
    """The orders: jobs to cancel by id and fence, and instances that are lost."""

    cancel: list[tuple[str, int]]
    lost: list[str]


class StepArgs(Struct, frozen=True, array_like=True, gc=False):
    """`keep_step`. Returns whether it was kept."""

    id: str
    fence: int
    step: int
    name: str
    result: int
    """A checksum (CRC-32) of the result."""
    taking: str | None = None


class ExtendArgs(Struct, frozen=True, array_like=True, gc=False):
    """`extend`. Returns as `add` does."""

    parent: str
    fence: int
    jobs: list[AddedJob]


class SendArgs(Struct, frozen=True, array_like=True, gc=False):
    """`send`. Returns the status of the job before, or None."""

    id: str
    name: str
    value: int
    """A checksum (CRC-32) of the value."""


class ReapArgs(Struct, frozen=True, array_like=True, gc=False):
    """`reap`. Returns as `claim` does."""

    holder: str
    n: int


class PlaceArgs(Struct, frozen=True, array_like=True, gc=False):
    """`hold` and `drop`. `hold` returns whether it has the place."""

    name: str
    holder: str
    limit: int = 0
    ttl: float = 0.0


class DocsArgs(Struct, frozen=True, array_like=True, gc=False):
    """`put` and `erase`: kind, name and version of each. Return which of them were done."""

    docs: list[tuple[str, str, int]]


class SwitchArgs(Struct, frozen=True, array_like=True, gc=False):
    """`switch`. Returns nothing that is recorded."""

    worker: str
    enabled: bool


class AmendArgs(Struct, frozen=True, array_like=True, gc=False):
    """`amend`: what is done, "cancel", "requeue" or "discard". Returns for each id whether it was, and its status."""

    change: Literal["cancel", "requeue", "discard"]
    ids: list[str]
    run_at: float | None = None


class AmendAnswer(Struct, frozen=True, array_like=True, gc=False):
    """For each id, whether it was changed, and its status before; None if there is no such job."""

    amended: list[tuple[bool, str | None]]


class CountArgs(Struct, frozen=True, array_like=True, gc=False):
    """`promote` and `prune`: how many at most. `promote` returns how many it moved and which workers' jobs expired."""

    n: int


class NamesArgs(Struct, frozen=True, array_like=True, gc=False):
    """`leave`: the instances; `restore`, `rewrite` and `results`: the jobs' ids; `take_over`: nothing.

    `results` returns a checksum (CRC-32) of each result, None where a job has none.
    """

    names: list[str]


ARGS: Final[dict[str, Any]] = {
    "add": AddArgs,
    "claim": ClaimArgs,
    "finish": FinishArgs,
    "beat": BeatArgs,
    "keep_step": StepArgs,
    "extend": ExtendArgs,
    "send": SendArgs,
    "promote": CountArgs,
    "reap": ReapArgs,
    "prune": CountArgs,
    "leave": NamesArgs,
    "hold": PlaceArgs,
    "drop": PlaceArgs,
    "put": DocsArgs,
    "erase": DocsArgs,
    "switch": SwitchArgs,
    "restore": NamesArgs,
    "take_over": NamesArgs,
    "amend": AmendArgs,
    "rewrite": NamesArgs,
    "results": NamesArgs,
}
"""The type of `Asked.args`, by call."""

ANSWERS: Final[dict[str, Any]] = {
    "add": AddAnswer,
    "claim": ClaimAnswer,
    "finish": FinishAnswer,
    "beat": BeatAnswer,
    "keep_step": bool,
    "extend": AddAnswer,
    "send": str | None,
    "promote": tuple[int, dict[str, int]],
    "reap": ClaimAnswer,
    "prune": int,
    "leave": None,
    "hold": bool,
    "drop": None,
    "put": list[bool],
    "erase": list[bool],
    "switch": None,
    "restore": None,
    "take_over": int,
    "amend": AmendAnswer,
    "rewrite": list[bool],
    "results": list[int | None],
}
"""The type of `Answered.answer`, by call."""

ENCODER: Final = msgspec.json.Encoder()
DECODER: Final = msgspec.json.Decoder(AnyLine)


def encode(line: AnyLine) -> bytes:
    """Return a line of a file, with its end."""
    return ENCODER.encode(line) + b"\n"


def decode(text: bytes) -> AnyLine:
    """Return the line that a line of a file says. Raises `msgspec.MsgspecError`."""
    line: AnyLine = DECODER.decode(text)
    return line
