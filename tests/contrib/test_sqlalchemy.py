"""SQLAlchemy: jobs are added when a session commits, and never without its rows."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.orm import Session

from shiftwork import LifecycleError, WorkerOrchestrator
from shiftwork.contrib.sqlalchemy import enqueue_after_commit


def shop(app: WorkerOrchestrator) -> Any:
    @app.task
    def bill(order: int) -> None: ...

    return bill


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    engine = create_engine(f"sqlite:///{tmp_path / 'shop.db'}")
    with Session(engine) as made:
        made.execute(text("CREATE TABLE orders (number int)"))
        made.commit()
        yield made
    engine.dispose()


def place(session: Any, app: WorkerOrchestrator, bill: Any, order: int) -> None:
    session.execute(text("INSERT INTO orders VALUES (:order)"), {"order": order})
    enqueue_after_commit(session, app, bill.call(order=order))


def test_only_what_is_committed_is_added(session: Session) -> None:
    app = WorkerOrchestrator("memory://")
    bill = shop(app)

    def added() -> list[int]:
        return sorted(job.payload["order"] for job in app.blocking.find_jobs())

    place(session, app, bill, 1)
    session.rollback()
    place(session, app, bill, 2)
    with session.begin_nested():
        place(session, app, bill, 3)
        with session.begin_nested() as inner:
            place(session, app, bill, 4)
            inner.rollback()
    with session.begin_nested() as outer:
        with session.begin_nested():
            place(session, app, bill, 5)
        outer.rollback()
    assert added() == [], "not before the commit"
    session.commit()
    assert added() == [2, 3]
    session.commit()
    assert added() == [2, 3], "not twice"
    place(session, app, bill, 6)
    session.commit()
    assert added() == [2, 3, 6]
    assert [row[0] for row in session.execute(text("SELECT number FROM orders"))] == [2, 3, 6]
    with pytest.raises(LifecycleError, match="one orchestrator"):
        place(session, WorkerOrchestrator("memory://"), bill, 7)
    app.blocking.close()
