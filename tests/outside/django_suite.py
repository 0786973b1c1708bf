"""Django's own tests of its tasks, with our backend in the place of its two.

`python -m tests.outside.django_suite FOLDER` runs them from an unpacked sdist of the installed Django, and prints the
tally as JSON. Jobs go through a store in a file. Where Django's tests use its dummy backend, which keeps tasks and
never runs them, the pool is paused; where they use the immediate one, a node of this process runs the job, and
`enqueue` waits for it.
"""

import sys
import tempfile
import unittest
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import django
import msgspec
from django.conf import settings

from tests.outside.tally import Tally

BACKEND: Final = "shiftwork.contrib.django.tasks.ShiftworkBackend"
QUEUES: Final = ("default", "queue_1", "queue-1", "queue-2", "unknown_queue")
"""What the tests name. A queue of ours needs a pool."""

WITHOUT_RESULTS: Final = "it asserts that the immediate backend keeps no results; ours does"
CHANGED_IN_PLACE: Final = "it changes a result inside the dummy backend; ours reads results from the store"
FROM_A_COROUTINE: Final = "it calls get_result or refresh inside a coroutine, which ours refuses: await aget_result"
ENDED: Final = (
    *("status", "started_at", "last_attempted_at", "finished_at"),
    *("errors", "worker_ids", "_return_value"),
)
"""What the end of a job changes in a result."""
SKIPPED: Final = {  # by a test, or by a module
    "DummyBackendTestCase.test_get_missing_result": FROM_A_COROUTINE,
    "DummyBackendTestCase.test_refresh_result": CHANGED_IN_PLACE,
    "DummyBackendTestCase.test_refresh_result_async": CHANGED_IN_PLACE,
    "ImmediateBackendTestCase.test_cannot_get_result": WITHOUT_RESULTS,
    "ImmediateBackendTestCase.test_cannot_pass_run_after": "it asserts that this backend takes no run_after; ours does",
    "ImmediateBackendTestCase.test_cannot_refresh_result": WITHOUT_RESULTS,
    "ImmediateBackendTestCase.test_throws_keyboard_interrupt": "the function runs in a thread of a node, not here",
    "TaskTestCase.test_get_missing_result": FROM_A_COROUTINE,
    "TaskTestCase.test_refresh_result": FROM_A_COROUTINE,
    "tasks.test_custom_backend": "its backends are its own, and ours is not among them",
}


def main(folder: Path) -> None:
    """Run the tests of this folder."""
    with tempfile.TemporaryDirectory() as data:
        prepare(data)
        sys.path.insert(0, str(folder))
        tally = run(folder)
    print(msgspec.json.encode(tally).decode())


def prepare(data: str) -> None:
    """Set Django up, and put our backends in the places of Django's."""
    settings.configure(
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
        INSTALLED_APPS=["shiftwork.contrib.django"],
        SHIFTWORK={"STORE": f"sqlite:///{data}/jobs.db", "POOLS": {name: {} for name in QUEUES}, "TASK_MODULES": []},
        TASKS={"default": {"BACKEND": BACKEND}},
        USE_TZ=True,
    )
    django.setup()
    from django.tasks.backends import dummy, immediate

    dummy.DummyBackend, immediate.ImmediateBackend = backends()


def backends() -> tuple[type, type]:
    """Return our backend with what Django's tests ask of its two."""
    from shiftwork.contrib.django import app
    from shiftwork.contrib.django.task_results import update
    from shiftwork.contrib.django.tasks import ShiftworkBackend

    aside = ThreadPoolExecutor(1)
    app.blocking.start()
    for pool in QUEUES:
        app.blocking.pause_pool(pool)

    class Keeping(ShiftworkBackend):
        """Shows all tasks that were added, and forgets them, as the dummy backend does."""

        @property
        def results(self) -> list[Any]:
            return aside.submit(self._results).result()

        def _results(self) -> list[Any]:
            return [self.get_result(job.id) for job in reversed(list(app.blocking.find_jobs()))]

        def clear(self) -> None:
            for job in app.blocking.find_jobs():
                if not job.over:
                    app.blocking.cancel_job(job.id)
                app.blocking.discard_job(job.id)

    class Running(ShiftworkBackend):
        """Returns a result when its job has ended, as the immediate backend does."""

        def enqueue(self, task: Any, args: Any, kwargs: Any) -> Any:
            result = super().enqueue(task, args, kwargs)
            app.blocking.resume_pool(task.queue_name)
            job = app.blocking.get_job(result.id)
            job.blocking.ended(30)
            app.blocking.pause_pool(task.queue_name)
            ended = self.get_result(result.id)
            update(result, **{name: getattr(ended, name) for name in ENDED})
            return result

    return Keeping, Running


def run(folder: Path) -> Tally:
    """Run all but what has no meaning for our backend."""
    suite = unittest.defaultTestLoader.discover(str(folder / "tasks"), top_level_dir=str(folder))
    names = []
    for test in tests_in(suite):
        kind, method = type(test), test.id().rpartition(".")[2]
        names.append(_name(test))
        why = SKIPPED.get(f"{kind.__name__}.{method}") or SKIPPED.get(kind.__module__)
        if why is not None:
            setattr(kind, method, unittest.skip(why)(getattr(kind, method)))
    result = unittest.TestResult()
    suite.run(result)
    failed = {_name(test): why for test, why in [*result.failures, *result.errors]}
    skipped = {_name(test): why for test, why in result.skipped}
    passed = len({*names} - failed.keys() - skipped.keys())
    return Tally(
        suite="Django's tests/tasks", version=django.__version__, passed=passed, failed=failed, skipped=skipped
    )


def _name(test: Any) -> str:
    """Return the name of a test, also of a part of one."""
    return str(test.id()).removeprefix("tasks.").partition(" ")[0]


def tests_in(suite: Any) -> Iterator[Any]:
    """Yield the tests of a suite of suites."""
    for one in suite:
        yield from tests_in(one) if isinstance(one, unittest.TestSuite) else (one,)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
