"""What a process does is in its file, line by line, whatever becomes of the process."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from shiftwork import Context, GiveUp, WorkerOrchestrator
from shiftwork.errors import ConfigurationError
from shiftwork.history.history_file import FIRST_PIECE_BYTES, HistoryFile
from shiftwork.history.lines import RECORDING_ENDED, Began, Defined, Ended, Fault, Opened, Stepped
from shiftwork.history.recorder import HistoryRecorder
from shiftwork.store.memory import MemoryStore
from shiftwork.store.sealed.key_ring import new_key
from shiftwork.store.sealed.store import SealedStore
from tests.history.written import asked, everything, files, of
from tests.store.conformance.acts import job

SECRET = "a-payload-that-must-not-be-found"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where this process writes its history."""
    made = tmp_path / "history"
    monkeypatch.setenv("SHIFTWORK_HISTORY", str(made))
    return made


async def run_some_jobs(app: WorkerOrchestrator) -> list[str]:
    """A coroutine, a thread, a durable function and a job that fails, each with a value that must not be recorded."""
    app.register_pool("threads", kind="thread", max_workers=2)

    @app.task
    async def greet(name: str) -> str:
        return f"hello {name}"

    @app.task(pool="threads")
    def greet_from_a_thread(name: str) -> str:
        return f"hello {name}"

    @app.task
    async def durable(ctx: Context, name: str) -> str:
        return await ctx.step("greet", str.upper, name) + await ctx.step("again", str.lower, name)

    @app.task
    async def fail(name: str) -> None:
        raise GiveUp(name)

    async with app:
        await app.start()
        jobs = [await each.enqueue(name=SECRET) for each in (greet, greet_from_a_thread, durable, fail)]
        for one in jobs:
            await one.ended(timeout_seconds=30)
    return [one.id for one in jobs]


def test_the_life_of_jobs_is_recorded_without_their_payloads(tmp_path: Path, folder: Path) -> None:
    ids = asyncio.run(run_some_jobs(WorkerOrchestrator(f"sqlite:///{tmp_path}/shop.db")))
    [file] = folder.iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    assert SECRET.lower().encode() not in file.read_bytes().lower()
    [lines] = files(folder)
    [opened] = of(lines, Opened)
    assert lines[0] is opened
    assert (opened.pid, opened.process, opened.store) == (os.getpid(), file.stem, f"sqlite:///{tmp_path}/shop.db")
    defined = {(one.kind, one.name) for one in of(lines, Defined)}
    assert {("worker", "durable"), ("pool", "threads"), ("pool", "default")} <= defined
    began, ended = of(lines, Began), of(lines, Ended)
    assert sorted(one.job for one in began) == sorted(ids)
    assert {one.job: one.kind for one in ended} == dict(zip(ids, 3 * ["returned"] + ["raised"], strict=True))
    assert [(one.job, one.step, one.name) for one in of(lines, Stepped)] == [(ids[2], 1, "greet"), (ids[2], 2, "again")]
    assert [added[0][0] for [added] in asked(lines, "add")] == ids
    kept = [(id, step, name) for id, _, step, name, *_ in asked(lines, "keep_step")]
    assert kept == [(ids[2], 1, "greet"), (ids[2], 2, "again")]
    outcomes = [tuple(one[:3]) for [batch] in asked(lines, "finish") for one in batch]
    fences = {one.job: one.fence for one in began}
    statuses = ["completed", "completed", "completed", "dead"]
    assert sorted(outcomes) == sorted((id, fences[id], status) for id, status in zip(ids, statuses, strict=True))


async def test_with_encryption_a_checksum_is_that_of_the_encrypted_value(tmp_path: Path, folder: Path) -> None:
    app = WorkerOrchestrator(f"sqlite:///{tmp_path}/shop.db", encryption_keys=[new_key()])
    assert isinstance(app.control.store.store, SealedStore)
    await run_some_jobs(app)
    first = [one[6] for [batch] in asked(everything(folder), "finish") for one in batch]
    assert len(of(everything(folder), Ended)) == 4
    assert len({*first}) > 2  # two results are equal; the encrypted ones are not


async def test_a_worker_that_is_registered_while_the_node_runs_is_defined_too(folder: Path) -> None:
    app = WorkerOrchestrator("memory://")
    async with app:
        await app.start()

        @app.task
        async def late() -> None: ...

        await (await late.enqueue()).ended(timeout_seconds=30)
    assert ("worker", "late") in {(one.kind, one.name) for one in of(everything(folder), Defined)}


def test_without_the_variable_nothing_is_around_the_store_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHIFTWORK_HISTORY", "")
    monkeypatch.chdir(tmp_path)
    app = WorkerOrchestrator("memory://")
    assert type(app.control.store.store) is MemoryStore
    asyncio.run(run_some_jobs(app))
    assert [*tmp_path.iterdir()] == []


def test_a_folder_that_cannot_be_used_is_named(folder: Path) -> None:
    folder.write_text("not a folder")
    with pytest.raises(ConfigurationError, match=rf"SHIFTWORK_HISTORY names .*{folder}: File exists"):
        WorkerOrchestrator("memory://")


# ── processes ────────────────────────────────────────────────────────────────────────────────────────────────────────

WRITING = """
import sys
from itertools import count
from pathlib import Path
from shiftwork.core.model.jobs import Claimed
from shiftwork.history.history_file import HistoryFile
from shiftwork.history.recorder import HistoryRecorder

job = Claimed(id="job", worker="w", pool="p", payload=b"", fence=1, attempt=1, crashes=0, run_at=0.0)
recorder = HistoryRecorder(HistoryFile(Path(sys.argv[1]), str))
for number in count(1):
    recorder.stepped(job, number, "x" * (number % 500))
    print(number, flush=True)
"""


def test_a_process_that_is_killed_leaves_every_line_up_to_then(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", WRITING, str(tmp_path)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        while (last := int(process.stdout.readline())) < 1_000:  # several pieces of the file
            pass
        process.kill()
        # A busy machine may have run no more of it.
        last = max([last, *(int(number) for number in process.stdout.read().split(b"\n") if number)])
    [lines] = files(tmp_path)
    assert tmp_path.glob("*.jsonl").__next__().stat().st_size > 2 * FIRST_PIECE_BYTES
    numbers = [one.step for one in of(lines, Stepped)]
    assert numbers == [*range(1, len(numbers) + 1)]
    assert len(numbers) in {last, last + 1}


FORKING = """
import os, sys
from shiftwork import WorkerOrchestrator

app = WorkerOrchestrator(sys.argv[1])

@app.task
def work(who: str) -> str: return who

work.enqueue_blocking("parent")
child = os.fork()
work.enqueue_blocking("child" if child == 0 else "parent")
if child:
    os.waitpid(child, 0)
app.blocking.close()
"""


@pytest.mark.parametrize("store", ["sqlite:///{}/shop.db", "memory://"])
def test_a_forked_process_writes_a_file_of_its_own(tmp_path: Path, folder: Path, store: str) -> None:
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKING, store.format(tmp_path)]
    subprocess.run(command, check=True, timeout=60)
    adds = [(of(lines, Opened)[0].pid, len(asked(lines, "add"))) for lines in files(folder)]
    assert sorted(number for _, number in adds) == [1, 2]
    assert len({pid for pid, _ in adds}) == 2


# ── the file ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def stepping(file: HistoryFile, thread: int, n: int) -> None:
    recorder = HistoryRecorder(file)
    [claimed] = [one_claimed()]
    for number in range(n):
        recorder.stepped(claimed, number, f"{thread} {'x' * (7 * number % 300)}")


def one_claimed() -> Any:
    from shiftwork.core.model.jobs import JobRecord

    return JobRecord.of(job("one"), 0.0).claimed()


def test_lines_of_several_threads_are_whole_and_none_is_lost(tmp_path: Path) -> None:
    file = HistoryFile(tmp_path, str)
    threads = [Thread(target=stepping, args=(file, number, 3_000)) for number in range(4)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    [lines] = files(tmp_path)
    written = [(one.name.split()[0], one.step) for one in of(lines, Stepped)]
    assert len(written) == 12_000
    for number in range(4):
        assert [step for thread, step in written if thread == str(number)] == [*range(3_000)]


def test_a_line_may_be_longer_than_a_piece(tmp_path: Path) -> None:
    recorder = HistoryRecorder(HistoryFile(tmp_path, str))
    recorder.asked("leave", None, [["i" * 3 * FIRST_PIECE_BYTES]])
    recorder.asked("leave", None, [["i"]])
    [lines] = files(tmp_path)
    assert [len(args[0][0]) for args in asked(lines, "leave")] == [3 * FIRST_PIECE_BYTES, 1]


def test_when_the_disk_is_full_the_file_says_so_and_the_process_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    file = HistoryFile(tmp_path, str)
    stepping(file, 1, 10)
    write = os.write

    def full(fd: int, text: bytes) -> int:
        if len(text) > 1_000:
            raise OSError(28, "No space left on device")
        return write(fd, text)

    monkeypatch.setattr(os, "write", full)
    stepping(file, 2, 1_000)
    [lines] = files(tmp_path)
    assert len(of(lines, Stepped)) < 1_010
    assert isinstance(lines[-1], Fault)
    assert lines[-1].kind == RECORDING_ENDED
    assert "No space left on device" in caplog.text
