"""Files on disk belong to their owner, from the moment they exist, and a discarded payload leaves nothing in them."""

import os
import shutil
import stat
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shiftwork import StoreUnavailableError, WorkerOrchestrator
from shiftwork.core.model.job_changes import Discard
from shiftwork.core.model.jobs import Progress, ProgressNote
from shiftwork.serve.vitals import Vitals, write_vitals
from shiftwork.store.sqlite.file import driver
from shiftwork.store.sqlite.file import modes as file_modes
from shiftwork.store.sqlite.file.modes import create_database
from shiftwork.store.sqlite.file.store_threads import StoreThreads
from shiftwork.store.sqlite.store import SqliteStore
from tests.store.conformance.acts import NOW, add, claim_one, failed, finish, job, report

MARK = "sw-marker-4f1c9b27"


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that every user may enter, with the umask under which files are open to all."""
    folder = Path(tempfile.mkdtemp(prefix="shiftwork-", dir="/tmp"))
    folder.chmod(0o755)
    before = os.umask(0)
    yield folder
    os.umask(before)
    shutil.rmtree(folder)


def modes(folder: Path) -> dict[str, str]:
    return {path.name: oct(stat.S_IMODE(path.stat().st_mode)) for path in folder.rglob("*")}


async def test_the_files_of_a_store_belong_to_their_owner(place: Path) -> None:
    store = SqliteStore(str(place / "jobs.db"))
    bell = store.listen({"leader"})
    await store.open()
    try:
        found = modes(place)
        bells = {name for name in found if name.endswith(".bell")}
        assert bells
        assert found == dict.fromkeys(["jobs.db", "jobs.db-wal", "jobs.db-shm", "turn", *bells], "0o600") | {
            "jobs.db.side": "0o700"
        }
        assert (await store.check())["file access"].severity is None
    finally:
        bell.close()
        await store.close()


async def test_a_database_is_private_from_the_moment_it_exists(place: Path) -> None:
    seen: set[int] = set()
    over = threading.Event()

    def look() -> None:
        while not over.is_set():
            for entry in os.scandir(place):
                try:
                    seen.add(entry.stat().st_mode & 0o077)
                except FileNotFoundError:
                    continue

    watcher = threading.Thread(target=look)
    watcher.start()
    for n in range(10):
        store = SqliteStore(str(place / f"{n}.db"))
        await store.open()
        await store.close()
    over.set()
    watcher.join()
    assert seen == {0}


async def test_the_files_of_a_database_that_a_group_shares_are_open_to_the_group(place: Path) -> None:
    database = place / "jobs.db"
    create_database(str(database))
    database.chmod(0o660)
    store = SqliteStore(str(database))
    bell = store.listen({"leader"})
    await store.open()
    try:
        assert {mode for name, mode in modes(place).items() if name != "jobs.db.side"} == {"0o660"}
        assert modes(place)["jobs.db.side"] == "0o770"
        assert "group" in (await store.check())["file access"].text
    finally:
        bell.close()
        await store.close()


async def test_the_doctor_names_the_files_that_every_user_can_open(place: Path) -> None:
    app = WorkerOrchestrator(f"sqlite:///{place}/jobs.db")
    await app.control.store.open()
    (place / "jobs.db").chmod(0o644)
    (place / "jobs.db.side").chmod(0o755)
    report = await app.control.doctor.examine()
    [problem] = [problem for problem in report.problems if problem.code == "file access"]
    assert problem.severity == "critical"
    assert "every user of this machine can open jobs.db, jobs.db.side" in problem.message
    assert problem.remedy == f"run: chmod o= {place}/jobs.db {place}/jobs.db.side"
    os.chmod(place, 0o700)  # noqa: PTH101 - the loop has nothing else to do
    assert (await app.check())["file access"].severity is None, "no other user can enter the folder"
    await app.control.close()


def test_a_probe_file_belongs_to_its_owner(place: Path) -> None:
    trap = place / f"probe.{os.getpid()}"
    trap.symlink_to(place / "elsewhere")
    vitals = Vitals(pid=os.getpid(), stage="running", leased=True, words="runs", at=time.monotonic())
    write_vitals(place / "probe", vitals)
    assert modes(place) == {"probe": "0o600"}, "and nothing is written through a planted link"


async def test_what_a_discarded_job_carried_is_gone_from_the_file(place: Path) -> None:
    database = place / "jobs.db"
    store = SqliteStore(str(database))
    await store.open()
    small, large = f"{MARK} small", f"{MARK} large" * 1000
    await add(store, job("1", payload=small.encode()), job("2", payload=large.encode()), job("3"))
    for n, words in ((1, small), (2, large)):
        claimed = await claim_one(store, f"{n}")
        await store.note([ProgressNote(f"{n}", claimed.fence, Progress(1.0, 2.0, words, NOW))])
        told = report(claimed, error=words)
        await finish(store, failed(claimed, error=small, report=told, result=words.encode(), verdict="neutral"))
    await store.amend(["1", "2"], Discard(), NOW)
    assert MARK.encode() in read(place, "jobs.db-wal"), "until the log is overwritten"
    await store.close()
    assert MARK.encode() not in read(place, "jobs.db")


def read(place: Path, name: str) -> bytes:
    return (place / name).read_bytes()


# ── what another user has put there first ────────────────────────────────────────────────────────────────────────────

NOBODY = 65534
only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of another user")


def _planted(place: Path, what: str) -> Path:
    """Something that another user has made in a folder that everyone may write to, as to /tmp."""
    place.chmod(0o1777)
    database, side = place / "jobs.db", place / "jobs.db.side"
    elsewhere = place / "elsewhere"
    if what == "folder":
        side.mkdir()
        os.chown(side, NOBODY, NOBODY)
        return side
    if what.startswith("link"):
        elsewhere.mkdir()
        link = database if what == "link to a database" else side
        link.symlink_to(elsewhere / "theirs.db" if what == "link to a database" else elsewhere)
        os.chown(link, NOBODY, NOBODY, follow_symlinks=False)
        return link
    planted = Path(f"{database}{what}")
    planted.touch(0o666)
    os.chown(planted, NOBODY, NOBODY)
    return planted


@only_root
@pytest.mark.parametrize("what", ["folder", "link", "link to a database", "", "-wal", "-shm", "-journal"])
async def test_what_another_user_has_made_is_not_used(place: Path, what: str) -> None:
    planted = _planted(place, what)
    store = SqliteStore(str(place / "jobs.db"))
    with pytest.raises(StoreUnavailableError, match=rf"{planted} is .*another user of this machine \(nobody\).*chmod"):
        await store.open()
    await store.close()
    assert not (place / "elsewhere" / "turn").exists()
    if planted.is_dir() and not planted.is_symlink():
        planted.rmdir()
    else:
        planted.unlink()
    await store.open()
    await store.close()


@only_root
async def test_a_link_inside_the_side_folder_is_not_followed(place: Path) -> None:
    (place / "jobs.db.side").mkdir(0o700)
    (place / "jobs.db.side" / "turn").symlink_to(place / "elsewhere")
    store = SqliteStore(str(place / "jobs.db"))
    with pytest.raises(StoreUnavailableError):
        await store.open()
    await store.close()
    assert not (place / "elsewhere").exists()


@only_root
async def test_a_store_that_its_owner_shares_with_our_group_is_used_and_so_is_one_in_its_owners_own_folder(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = place / "jobs.db"
    create_database(str(database))
    os.chown(database, NOBODY, os.getegid())
    database.chmod(0o660)
    store = SqliteStore(str(database))
    with pytest.raises(StoreUnavailableError, match="in a folder where not everyone may write"):
        await store.open()  # anyone in a group that many systems give to all people can put it below /tmp
    await store.close()
    with monkeypatch.context() as below_srv:
        below_srv.setattr(file_modes, "_open_to_all", lambda _path: False)
        await store.open()
        await store.close()
    database.chmod(0o600)
    with pytest.raises(StoreUnavailableError, match="another user"):
        file_modes.refuse_foreign_database(str(database))
    monkeypatch.setattr(file_modes, "_open_to_all", lambda _path: False)  # as below /home or /srv
    file_modes.refuse_foreign_database(str(database))
    monkeypatch.setattr(os, "geteuid", lambda: 1234)  # neither its owner nor root
    with pytest.raises(StoreUnavailableError, match="another user"):
        file_modes.refuse_foreign_database(str(database))


@only_root
def test_a_link_that_another_user_has_made_is_followed_where_only_few_may_put_one(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = place / "current"  # as a deployment makes it, whose user is not that of the app
    link.symlink_to(place)
    os.chown(link, NOBODY, NOBODY, follow_symlinks=False)
    with pytest.raises(StoreUnavailableError, match="a link that was made by another user"):
        file_modes.refuse_foreign_links(link / "jobs.db")
    monkeypatch.setattr(file_modes, "_open_to_all", lambda _path: False)
    monkeypatch.setattr(os, "geteuid", lambda: 1234)
    file_modes.refuse_foreign_links(link / "jobs.db")


@only_root
async def test_a_journal_that_another_user_plants_before_the_reader_opens_is_not_read(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    genuine, planted = StoreThreads._open_reader, list[Path]()  # noqa: SLF001 - between two of its steps

    def open_reader(threads: StoreThreads, writer: Any) -> Any:
        writer.await_start()
        if not planted:
            planted.append(_planted(place, "-journal"))  # SQLite would write its pages into the database
        return genuine(threads, writer)

    monkeypatch.setattr(StoreThreads, "_open_reader", open_reader)
    store = SqliteStore(str(place / "jobs.db"))
    with pytest.raises(StoreUnavailableError, match=r"jobs\.db-journal is made by another user"):
        await store.get(["1"])
    planted[0].unlink()
    assert await store.get(["1"]) == [None]
    await store.close()


@only_root
async def test_a_file_that_another_user_plants_while_the_store_opens_is_noticed(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    genuine = driver.prepare_writer

    def prepare(*args: Any) -> None:
        genuine(*args)
        _planted(place, "-journal")

    monkeypatch.setattr(driver, "prepare_writer", prepare)
    store = SqliteStore(str(place / "jobs.db"))
    with pytest.raises(StoreUnavailableError, match="another user"):
        await store.open()
    await store.close()
