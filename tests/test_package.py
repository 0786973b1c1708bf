"""What is installed: the wheel's contents, and the names that `windlass` exports."""

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from zipfile import ZipFile

import pytest

import windlass


@pytest.fixture(scope="module")
def wheel_names(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> frozenset[str]:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)],
        cwd=checkout,
        check=True,
        capture_output=True,
    )
    (wheel,) = folder.glob("*.whl")
    with ZipFile(wheel) as archive:
        return frozenset(archive.namelist())


def test_wheel_has_every_file_of_the_source(checkout: Path, wheel_names: frozenset[str]) -> None:
    source = checkout / "src"
    files = (path for path in source.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    assert {path.relative_to(source).as_posix() for path in files} - wheel_names == set()


@pytest.mark.parametrize("folder", ["sqlite", "postgres", "postgres/migrations"])
def test_wheel_has_sql(wheel_names: frozenset[str], folder: str) -> None:
    assert [name for name in wheel_names if name.startswith(f"windlass/store/{folder}/") and name.endswith(".sql")]


def test_wheel_has_lua(wheel_names: frozenset[str]) -> None:
    assert [name for name in wheel_names if name.startswith("windlass/store/redis/") and name.endswith(".lua")]


def test_wheel_is_typed(wheel_names: frozenset[str]) -> None:
    assert "windlass/py.typed" in wheel_names


def test_wheel_has_nothing_but_the_package(wheel_names: frozenset[str]) -> None:
    assert {name.split("/")[0] for name in wheel_names} == {"windlass", f"windlass-{version('windlass')}.dist-info"}


def test_exported_names_are_sorted_and_exist() -> None:
    assert list(windlass.__all__) == sorted(windlass.__all__)
    assert [name for name in windlass.__all__ if not hasattr(windlass, name)] == []
