"""Threads that take turns: one that is stepped runs to its next pause, and no other runs meanwhile."""

import threading
from collections.abc import Callable


class AbandonedError(BaseException):
    """Ends an actor that will not be stepped again."""


class Actor:
    """Runs a function from pause to pause."""

    def __init__(self, todo: Callable[[], object]) -> None:
        self.over: bool = False
        self.at: str = ""
        """What it comes to next."""
        self._todo = todo
        self._error: BaseException | None = None
        self._abandoned = False
        self._go, self._paused = threading.Lock(), threading.Lock()
        self._go.acquire()
        self._paused.acquire()
        self._thread = threading.Thread(target=self._run, name="an actor", daemon=True)
        self._thread.start()

    def step(self) -> None:
        """Let it run to its next pause, or to its end. Raises what it raises."""
        assert not self.over, "it has ended"
        self.at = ""
        self._go.release()
        self._paused.acquire()
        if self._error is not None:
            raise self._error

    def pause(self) -> None:
        """Wait for the next step. Called in its thread."""
        if not self._abandoned:
            self._paused.release()
            self._go.acquire()
        if self._abandoned:
            raise AbandonedError

    def abandon(self) -> None:
        """End it where it is, as if it were dead: no pause lets it continue."""
        if not self.over:
            self._abandoned = True
            self.step()
        self._thread.join()

    def _run(self) -> None:
        _current.actor = self
        self._go.acquire()
        try:
            if not self._abandoned:
                self._todo()
        except AbandonedError:
            pass
        except BaseException as error:  # noqa: BLE001 - the test that steps it has to see it
            self._error = error
        finally:
            self.over = True
            self._paused.release()


_current = threading.local()


def come_to(what: str) -> None:
    """Have the actor in whose thread this is called wait for its next step, in which it does this."""
    actor = _current.__dict__.get("actor")
    if actor is not None:
        actor.at = what
        actor.pause()
