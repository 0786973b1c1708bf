"""What is installed: the wheel's contents, and the names that `shiftwork` exports."""

import gzip
import json
import re
import subprocess
import sys
import tarfile
import tomllib
from importlib.metadata import version
from pathlib import Path, PurePath
from zipfile import ZipFile

import pytest

import shiftwork
from tests.sbom import sbom


def build(checkout: Path, target: str, folder: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(folder)]
    subprocess.run(command, cwd=checkout, check=True, capture_output=True)


@pytest.fixture(scope="module")
def wheel(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build(checkout, "wheel", folder)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def wheel_names(wheel: Path) -> frozenset[str]:
    with ZipFile(wheel) as archive:
        return frozenset(archive.namelist())


def test_wheel_has_every_file_of_the_source(checkout: Path, wheel_names: frozenset[str]) -> None:
    source = checkout / "src"
    files = (path for path in source.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    assert {path.relative_to(source).as_posix() for path in files} - wheel_names == set()


@pytest.mark.parametrize("folder", ["sqlite", "postgres", "postgres/migrations", "postgres/functions"])
def test_wheel_has_sql(wheel_names: frozenset[str], folder: str) -> None:
    assert [name for name in wheel_names if name.startswith(f"shiftwork/store/{folder}/") and name.endswith(".sql")]


def test_wheel_has_lua(wheel_names: frozenset[str]) -> None:
    assert [name for name in wheel_names if name.startswith("shiftwork/store/redis/") and name.endswith(".lua")]


def test_wheel_has_the_dashboard(wheel_names: frozenset[str]) -> None:
    built = {name.removeprefix("shiftwork/web/dist/") for name in wheel_names if name.startswith("shiftwork/web/dist/")}
    assert {"index.html", "icon.svg"} < built
    assets = {name for name in built if name.startswith("assets/")}
    assert {PurePath(name.removesuffix(".gz")).suffix for name in assets} == {".css", ".js"}
    assert {f"{name}.gz" for name in assets if not name.endswith(".gz")} <= assets  # for those who accept gzip


def test_wheel_has_the_licenses_of_the_bundled_javascript(checkout: Path, wheel_names: frozenset[str]) -> None:
    assert "shiftwork/web/dist/licenses.txt" in wheel_names
    text = (checkout / "src/shiftwork/web/dist/licenses.txt").read_text()
    wanted = json.loads((checkout / "ui/package.json").read_text())["dependencies"]
    named = re.findall(r"^(\S+) \d+\.\d+\.\d+$", text, re.MULTILINE)
    assert {*wanted, "scheduler", "tailwindcss"} <= set(named)  # react-dom brings one, the styles another
    assert len(re.findall(r"Copyright", text)) >= len(named)
    assert text.count("Permission is hereby granted") == len(named)


def test_sdist_has_the_dashboard_and_what_it_is_built_from(checkout: Path, tmp_path: Path) -> None:
    build(checkout, "sdist", tmp_path)
    (sdist,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"src/shiftwork/web/dist/index.html", "ui/src/main.tsx", "ui/package-lock.json", "hatch_build.py"} <= names
    assert not [name for name in names if name.startswith("ui/node_modules/")]
    suite = {path.relative_to(checkout).as_posix() for path in (checkout / "tests/store/conformance").rglob("*.py")}
    assert len(suite) > 25  # the author of a store runs it from here
    assert suite <= names


def test_dashboard_is_small_and_asks_no_other_host(checkout: Path) -> None:
    built = checkout / "src/shiftwork/web/dist"
    files = [path for path in built.rglob("*") if path.is_file() and path.suffix != ".gz"]
    assert sum(len(gzip.compress(path.read_bytes())) for path in files) < 300_000
    index = (built / "index.html").read_text()
    assert set(re.findall(r'(?:src|href)="(.)', index)) == {"."}  # relative, so that any sub-path works
    assert "<style" not in index


def test_locked_packages_have_hashes_and_name_no_registry(checkout: Path) -> None:
    locked = json.loads((checkout / "ui/package-lock.json").read_text())["packages"]
    packages = {path: package for path, package in locked.items() if path}
    assert not [path for path, package in packages.items() if "resolved" in package]
    # What comes within another package is covered by that one's.
    assert not [path for path, one in packages.items() if not one.get("inBundle") and "integrity" not in one]


def test_wheel_is_typed(wheel_names: frozenset[str]) -> None:
    assert "shiftwork/py.typed" in wheel_names


def test_wheel_has_nothing_but_the_package(wheel_names: frozenset[str]) -> None:
    ours = {"shiftwork", "pytest_shiftwork.py", f"shiftwork-{version('shiftwork')}.dist-info"}
    assert {name.split("/")[0] for name in wheel_names} == ours


def test_the_sbom_has_what_the_wheel_contains_and_needs(checkout: Path, wheel: Path) -> None:
    document = sbom(wheel)
    itself, parts = document["metadata"]["component"], {one["purl"]: one for one in document["components"]}
    assert (itself["name"], itself["version"]) == ("shiftwork", shiftwork.__version__)
    scripts = {one["name"] for purl, one in parts.items() if purl.startswith("pkg:npm/")}
    assert {*json.loads((checkout / "ui/package.json").read_text())["dependencies"]} <= scripts
    project = tomllib.loads((checkout / "pyproject.toml").read_text())["project"]
    required = {one["name"] for purl, one in parts.items() if "/npm/" not in purl and one["scope"] == "required"}
    assert {re.split(r"[>;]", one)[0] for one in project["dependencies"]} - {"tzdata"} <= required
    assert {"hiredis", "psycopg-pool", "starlette", "anyio"} <= {one["name"] for one in parts.values()} - required
    links = {link["ref"]: link["dependsOn"] for link in document["dependencies"]}
    assert {one for found in links.values() for one in found} == parts.keys()
    assert "://" not in json.dumps(document).replace(document["$schema"], "")  # no registry
    assert sbom(wheel) == document


def test_exported_names_are_sorted_and_exist() -> None:
    assert list(shiftwork.__all__) == sorted(shiftwork.__all__)
    assert [name for name in shiftwork.__all__ if not hasattr(shiftwork, name)] == []
