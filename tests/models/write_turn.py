"""Whose turn it is to write to a SQLite file, as a model.

Shared are SQLite's write lock and the lock on a side file, the line. The kernel lets go of both when a process dies,
and of neither when it is frozen.
"""

from collections.abc import Iterator
from typing import Any, Final, Literal, NamedTuple

from tests.models.explorer import changed

Fault = Literal["", "no courtesy", "the line outlives its holder", "stays in line", "the first barges in"]


class Writer(NamedTuple):
    left: int = 1
    """How many more times it wants to write."""
    does: str = "is idle"
    waited: int = -1
    """0 once it waits, 1 if it has waited for longer than courtesy asks for, 2 if it has lost its patience."""
    looked: int = 0
    """What it saw of that when it last woke up."""
    frozen: bool = False


class World(NamedTuple):
    writers: tuple[Writer, ...]
    line: int | None = None
    lock: int | None = None
    accidents: int = 1
    """How many more times something may freeze or die."""
    crime: str | None = None


WAITS: Final = ("is in line", "wants into the line", "naps")
IN_LINE: Final = ("is in line", "naps", "has begun", "gives up")


class WriteTurns:
    """A few processes that want to write; one of them may freeze or die. The first one writes again at once."""

    def __init__(self, *, writers: int, again: int = 1, accidents: int = 1, fault: Fault = "") -> None:
        self._writers = (Writer(left=1 + again), *(Writer() for _ in range(writers - 1)))
        self._accidents = accidents
        self._fault = fault

    def start(self) -> World:
        return World(self._writers, accidents=self._accidents)

    def steps(self, world: World) -> Iterator[tuple[str, World]]:
        for one, writer in enumerate(world.writers):
            if writer.frozen:
                continue
            step = self._step(world, one, writer)
            if step is not None:
                yield step
            if writer.waited == 0 and writer.does in WAITS:
                yield f"writer {one}: has waited for a second", self._put(world, one, waited=1)
            blocked = world.lock is not None and world.writers[world.lock].frozen
            if writer.waited == 1 and writer.does in WAITS and blocked:
                yield f"writer {one}: has waited for half a minute", self._put(world, one, waited=2)

    def chances(self, world: World) -> Iterator[tuple[str, World]]:
        for one, writer in enumerate(world.writers):
            if writer.frozen:
                yield f"writer {one}: goes on", self._put(world, one, frozen=False)
            elif world.accidents and writer.does not in {"is idle", "is gone"}:
                fewer = world._replace(accidents=world.accidents - 1)
                yield f"writer {one}: freezes", self._put(fewer, one, frozen=True)
                yield f"writer {one}: dies", self._die(fewer, one)

    def _step(self, world: World, one: int, writer: Writer) -> tuple[str, World] | None:
        name = f"writer {one}:"
        match writer.does:
            case "is idle" if writer.left:
                return f"{name} wants to write", self._put(world, one, does="wants into the line", waited=-1, looked=0)
            case "wants into the line":
                return f"{name} tries the line", self._try_line(world, one, writer)
            case "is in line" | "goes ahead":
                return f"{name} tries to begin", self._try_begin(world, one, writer)
            case "naps":
                does = "is in line" if world.line == one else "wants into the line"
                return f"{name} wakes", self._put(world, one, does=does, looked=writer.waited)
            case "has begun" | "gives up":
                return f"{name} leaves the line", self._leave(world, one, writer)
            case "writes":
                return f"{name} commits", self._put(
                    world._replace(lock=None), one, does="is idle", left=writer.left - 1
                )
        return None

    def _try_line(self, world: World, one: int, writer: Writer) -> World:
        if self._fault == "the first barges in" and one == 0:
            return self._put(world, one, does="goes ahead")
        if world.line is None:
            return self._put(world._replace(line=one), one, does="is in line")
        hurries = writer.looked > 0 and self._fault != "no courtesy"
        return self._put(world, one, does="goes ahead") if hurries else self._in_vain(world, one, writer)

    def _in_vain(self, world: World, one: int, writer: Writer) -> World:
        does = "gives up" if writer.looked == 2 else "naps"
        return self._put(world, one, does=does, waited=max(writer.waited, 0))

    def _try_begin(self, world: World, one: int, writer: Writer) -> World:
        if world.lock is not None:
            return self._in_vain(world, one, writer)
        waits = world.line is not None and world.line != one and not world.writers[world.line].frozen
        crime = (
            f"writer {one} goes before writer {world.line}, which is in line" if waits and not writer.looked else None
        )
        return self._put(world._replace(lock=one, crime=crime), one, does="has begun")

    def _leave(self, world: World, one: int, writer: Writer) -> World:
        if world.line == one and not (self._fault == "stays in line" and writer.does == "gives up"):
            world = world._replace(line=None)
        if writer.does == "has begun":
            return self._put(world, one, does="writes")
        return self._put(world, one, does="is idle", left=writer.left - 1)

    def _die(self, world: World, one: int) -> World:
        line = world.line if self._fault == "the line outlives its holder" else self._without(world.line, one)
        return self._put(world._replace(line=line, lock=self._without(world.lock, one)), one, does="is gone", left=0)

    def _without(self, holder: int | None, one: int) -> int | None:
        return None if holder == one else holder

    def _put(self, world: World, one: int, **changes: Any) -> World:
        return world._replace(writers=changed(world.writers, one, world.writers[one]._replace(**changes)))

    def wrong(self, world: World) -> str | None:
        if world.line is not None and world.writers[world.line].does not in IN_LINE:
            return f"writer {world.line} is in line, and {world.writers[world.line].does}"
        writing = [one for one, writer in enumerate(world.writers) if writer.does in {"has begun", "writes"}]
        return f"{writing} write at the same time" if len(writing) > 1 else world.crime

    def undone(self, world: World) -> str | None:
        waiting = [one for one, writer in enumerate(world.writers) if writer.left and not writer.frozen]
        return f"{waiting[0]} waits for ever" if waiting else None
