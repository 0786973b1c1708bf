"""Add a job when a SQLAlchemy session commits. On the store's own PostgreSQL, see `transaction`."""

from sqlalchemy import create_engine, text
from sqlalchemy.orm import Session

from shiftwork import WorkerOrchestrator
from shiftwork.contrib.sqlalchemy import enqueue_after_commit

app = WorkerOrchestrator("memory://")
engine = create_engine("sqlite://")


@app.task
def bill(order: str) -> str:
    return f"billed the {order}"


def place(order: str, *, in_stock: bool) -> None:
    with Session(engine) as session, session.begin():
        session.execute(text("INSERT INTO orders VALUES (:name)"), {"name": order})
        enqueue_after_commit(session, app, bill.call(order=order))
        if not in_stock:
            raise LookupError(f"the {order} is sold out")


def main() -> None:
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE orders (name text)"))
    app.blocking.start()
    place("lamp", in_stock=True)
    try:
        place("chair", in_stock=False)
    except LookupError as error:
        print(f"{error}: no order, no job")
    print([job.blocking.result(timeout_seconds=30) for job in app.blocking.find_jobs()])
    app.blocking.stop()
    engine.dispose()


if __name__ == "__main__":
    main()
