"""The company's orders: real rows in an SQLite table, exported as CSV."""

import csv
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Final

CUSTOMERS: Final = 10
ROWS_EACH: Final = 1_500
COLUMNS: Final = ("id", "customer", "day", "article", "quantity", "cents")


def make(path: Path) -> None:
    """Write the table."""
    dice = Random(1)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(f"CREATE TABLE orders ({', '.join(COLUMNS)}, PRIMARY KEY (id))")
        db.execute("CREATE INDEX by_customer ON orders (customer, day)")
        db.executemany("INSERT INTO orders VALUES (?, ?, ?, ?, ?, ?)", _rows(dice))


def _rows(dice: Random) -> Iterator[tuple[int, int, str, str, int, int]]:
    for number in range(CUSTOMERS * ROWS_EACH):
        day = f"2026-{dice.randrange(1, 13):02}-{dice.randrange(1, 29):02}"
        yield (
            number,
            number % CUSTOMERS,
            day,
            f"article {dice.randrange(900)}",
            dice.randrange(1, 9),
            dice.randrange(99_999),
        )


def of_customer(path: Path, customer: int) -> list[tuple[int, int, str, str, int, int]]:
    """The orders of one customer, by day."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        return db.execute("SELECT * FROM orders WHERE customer = ? ORDER BY day, id", (customer,)).fetchall()


def export(path: Path, customer: int, into: Path) -> int:
    """Write the orders of one customer as CSV, and return how many there are."""
    rows = of_customer(path, customer)
    beside = into.with_suffix(f".{os.getpid()}-{into.stem}")  # a process killed while it writes leaves no half a file
    with beside.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows(rows)
    beside.replace(into)
    return len(rows)


def rows_in(path: Path) -> int:
    """How many rows an export has, below its header."""
    with path.open(newline="") as file:
        reader = csv.reader(file)
        assert tuple(next(reader)) == COLUMNS
        return sum(1 for _ in reader)
