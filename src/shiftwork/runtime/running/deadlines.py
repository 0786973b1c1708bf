"""The deadlines of running jobs, watched by one timer instead of one each: most runs end long before theirs."""

from collections.abc import Callable

from shiftwork.runtime.clock import Clock, Timer
from shiftwork.runtime.running.job_run import AnyRun, Run


class Deadlines:
    """Calls `on_expired` for every run that reaches its deadline, which counts from when the run began.

    Runs with the same timeout reach their deadlines in the order in which they were started. So there is a queue for
    each timeout, and a run that ends leaves its queue at once, with everything it refers to. Those that began later
    than they were started are watched for the rest of their time, or once more if they have not begun.
    """

    def __init__(
        self, clock: Clock, *, began: Callable[[AnyRun], float | None], on_expired: Callable[[AnyRun], None]
    ) -> None:
        self._clock = clock
        self._began = began
        self._on_expired = on_expired
        self._late: dict[Run, float] = {}
        """The deadlines of runs that began later than they were started, in no order."""
        self._queues: dict[float, dict[Run, float]] = {}
        """The deadlines of the runs with each timeout, the next one first."""
        self._armed_for = float("inf")
        self._timer: Timer | None = None

    def watch(self, run: Run, seconds: float) -> None:
        """Expire this run after this many seconds, by the monotonic clock, unless it is forgotten by then."""
        deadline = self._clock.monotonic() + seconds
        queue = self._queues.get(seconds)
        if queue is None:
            queue = self._queues[seconds] = {}
        queue[run] = deadline
        if deadline < self._armed_for:
            self._arm()

    def forget(self, run: Run, seconds: float) -> None:
        """Let go of a run, which has ended. Harmless if it is not watched."""
        queue = self._queues.get(seconds)
        if queue is not None:
            queue.pop(run, None)
        if self._late:
            self._late.pop(run, None)

    def close(self) -> None:
        """Forget every deadline."""
        self._queues.clear()
        self._late.clear()
        self._arm()

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        self._queues = {seconds: queue for seconds, queue in self._queues.items() if queue}
        first = [next(iter(queue.values())) for queue in self._queues.values()]
        self._armed_for = min([*first, *self._late.values()], default=float("inf"))
        if self._queues or self._late:
            self._timer = self._clock.call_in(self._armed_for - self._clock.monotonic(), self._ring)

    def _ring(self) -> None:
        now = self._clock.monotonic()
        late = [run for run, deadline in self._late.items() if deadline <= now]
        try:
            for queue, due in [(self._late, late), *((queue, _due(queue, now)) for queue in self._queues.values())]:
                for run in due:
                    if queue.pop(run, None) is not None:  # the end of another may have ended this one
                        self._judge(run, now)
        finally:
            self._arm()

    def _judge(self, run: Run, now: float) -> None:
        seconds, began = run.config.timeout_seconds, self._began(run)
        assert seconds is not None  # noqa: S101 - only runs with a deadline are watched
        left = seconds if began is None else began + seconds - now
        if left > 0:
            self._late[run] = now + left
        else:
            self._on_expired(run)


def _due(queue: dict[Run, float], now: float) -> list[Run]:
    due = []
    for run, deadline in queue.items():
        if deadline > now:
            break
        due.append(run)
    return due
