"""Whose turn it is to write to a SQLite file, in every interleaving."""

from pathlib import Path
from shiftwork.store.sqlite.file import driver
from tests.models.explorer import explored
from tests.models.real_write_turn import RealWriteTurns, expected, pausing
from tests.models.replay import replay
from tests.models.write_turn import WriteTurns


def test_writers_do_as_in_the_model(tmp_path: Path) -> None:
    walks = explored(WriteTurns(writers=2)).walks()
    path = tmp_path / "file.db"
    driver.connect(str(path)).close()
    path.touch()
    with pausing():
        print(replay(walks, lambda: RealWriteTurns(path, 2), expected))
