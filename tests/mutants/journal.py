"""Results as lines of a file, so that a run can continue where another one was stopped."""

from pathlib import Path
from typing import Generic, TypeVar

from msgspec import json

T = TypeVar("T")


class Journal(Generic[T]):
    """The file with the results."""

    def __init__(self, path: Path, kind: type[T]) -> None:
        self._path = path
        self._kind = kind

    def add(self, result: T) -> None:
        """Append a result."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("ab") as file:
            file.write(json.encode(result) + b"\n")

    def read(self) -> list[T]:
        """Return all results, the oldest first."""
        lines = self._path.read_bytes().splitlines() if self._path.exists() else []
        return [json.decode(line, type=self._kind) for line in lines]
