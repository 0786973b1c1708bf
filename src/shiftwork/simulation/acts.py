"""The functions of simulated workers. What each run of a job does is written in its payload, as a script.

A script has a part for each run, separated by `|`; runs beyond the last part do what the last one says. A part is a
row of words, done in turn:

    0.25         take this long, in seconds          fail         raise
    hang:20      take this long, whatever happens    crash:9      kill the process, by this signal
    snooze:3     hand the job back                   retry:3      fail, and ask for another attempt after this
    giveup       fail for good                       progress     report progress
    step:0.25    a step that takes this long         sleep:5      sleep durably
    wait:go:20   wait this long for a signal         extend:mail  add a job of this worker to the flow
    block:3      hold up the event loop              flaky:2      fail in the first two runs of the job

A durable function must do the same in each run: its script has one part.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from shiftwork.core.jobs.retry import GiveUp, RetryAfter, Snooze
from shiftwork.runtime.context.context import Context
from shiftwork.simulation.ground.world import World


class ActError(Exception):
    """What a function raises that is to fail."""


class Stage(Struct, frozen=True):
    """What functions find in `ctx.state`."""

    world: World
    scripts: Mapping[str, str]
    """What the runs of workers do that have no payload."""
    call: Callable[[str], Any]
    """Makes a call of a worker."""


def words_of(script: str, run: int) -> list[str]:
    """Return what a run does."""
    parts = script.split("|")
    return parts[min(run, len(parts) - 1)].split()


async def act(ctx: Context, script: str, key: str, given: int = 0) -> int:  # noqa: ARG001 - keys, and results of others
    """Do what the script says, as a coroutine."""
    run = ctx.state.world.next_run(ctx.job_id)
    for word in words_of(script, run):
        name, _, value = word.partition(":")
        if name[0].isdigit():
            await asyncio.sleep(float(name))
        elif name in _WAITING:
            await _WAITING[name](ctx, value)
        else:
            _AT_ONCE[name](ctx, value, run)
    return ctx.fence


def act_plainly(ctx: Context, script: str, key: str, given: int = 0) -> int:  # noqa: ARG001 - as above
    """Do what the script says, as a plain function in a thread."""
    world: World = ctx.state.world
    run = world.next_run(ctx.job_id)
    for word in words_of(script, run):
        name, _, value = word.partition(":")
        if name[0].isdigit():
            world.strands.sleep(float(name))
        elif name == "hang":
            world.strands.sleep(float(value))
        elif name == "block":
            world.block(world.here, float(value))
            world.strands.sleep(0.0)
        else:
            _AT_ONCE[name](ctx, value, run)
            if name == "crash":
                world.strands.sleep(3600.0)
    return ctx.fence


async def tick(ctx: Context) -> int:
    """Do what the script of the worker says, as a coroutine of a worker with a schedule."""
    stage: Stage = ctx.state
    run = stage.world.next_run(ctx.worker.name)
    parts = stage.scripts[ctx.worker.name].split("|")
    return await act(ctx, parts[run % len(parts)], "")


def tick_plainly(ctx: Context) -> int:
    """Do the same as a plain function."""
    stage: Stage = ctx.state
    run = stage.world.next_run(ctx.worker.name)
    parts = stage.scripts[ctx.worker.name].split("|")
    return act_plainly(ctx, parts[run % len(parts)], "")


# ── words that wait ──────────────────────────────────────────────────────────────────────────────────────────────────


async def _hang(_: Context, value: str) -> None:
    loop = asyncio.get_running_loop()
    until = loop.time() + float(value)
    while loop.time() < until:
        try:
            await asyncio.sleep(until - loop.time())
        except asyncio.CancelledError:  # it does not care
            continue


async def _crash(ctx: Context, value: str) -> None:
    world: World = ctx.state.world
    world.kill(world.here, -int(value))
    await asyncio.sleep(3600.0)


async def _block(ctx: Context, value: str) -> None:
    world: World = ctx.state.world
    world.block(world.here, float(value))
    await asyncio.sleep(0.0)


async def _step(ctx: Context, value: str) -> None:
    await ctx.step(f"a step of {value}", _part, float(value))


async def _part(seconds: float) -> int:
    await asyncio.sleep(seconds)
    return 1


async def _sleep(ctx: Context, value: str) -> None:
    await ctx.sleep(float(value))


async def _wait(ctx: Context, value: str) -> None:
    name, _, seconds = value.partition(":")
    try:
        await ctx.wait_for(name, float(seconds))
    except TimeoutError:
        return


async def _extend(ctx: Context, value: str) -> None:
    await ctx.enqueue_flow(ctx.state.call(value))


_WAITING = {
    "hang": _hang,
    "crash": _crash,
    "block": _block,
    "step": _step,
    "sleep": _sleep,
    "wait": _wait,
    "extend": _extend,
}


# ── words that do not ────────────────────────────────────────────────────────────────────────────────────────────────


def _fail(_: Context, __: str, ___: int) -> None:
    raise ActError("as the script says")


def _flaky(_: Context, value: str, run: int) -> None:
    if run < int(value):
        raise ActError("as the script says")


def _give_up(_: Context, __: str, ___: int) -> None:
    raise GiveUp("as the script says")


def _retry(_: Context, value: str, __: int) -> None:
    raise RetryAfter(float(value))


def _snooze(_: Context, value: str, __: int) -> None:
    raise Snooze(float(value))


def _progress(ctx: Context, _: str, __: int) -> None:
    ctx.progress(1, 2, "half")


def _crash_plainly(ctx: Context, value: str, _: int) -> None:
    world: World = ctx.state.world
    world.kill(world.here, -int(value))


_AT_ONCE = {
    "fail": _fail,
    "flaky": _flaky,
    "giveup": _give_up,
    "retry": _retry,
    "snooze": _snooze,
    "progress": _progress,
    "crash": _crash_plainly,
}
