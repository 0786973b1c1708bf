"""What a release would publish, examined: `make wheel`. It needs a package index, and takes minutes.

Builds the sdist and the wheel into build/release and checks the names, the bytes and the metadata. Writes an SBOM
beside the wheel, and prints how complete the types are. Then it installs the wheel into fresh virtual environments,
alone and with each extra, and runs a job in each.
"""

import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePath
from typing import Final
from zipfile import ZipFile

from tests.sbom import write_sbom
from tests.store.servers.postgres import own_server
from tests.store.servers.redis import Server, binary, required, wheel_binary

TOP: Final = Path(__file__).resolve().parent.parent
OUT: Final = TOP / "build" / "release"
TOOLS: Final = OUT / "tools"
"""What requirements/release.txt names."""
IMPORTS: Final = 9
LEAST_TYPED: Final = 0.99
"""The rest is Django's, which has no types. tests/typing holds all that is public to 100 %."""
ENDINGS: Final = {".py": "Python", ".lua": "Lua", ".sql": "SQL", ".pyi": "Python"}
VALID: Final = """
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
sys.exit(JsonStrictValidator(SchemaVersion.V1_6).validate_str(open(sys.argv[1]).read()))
"""
KEY: Final = "0DKSRgCc3zjzIkRLrXFOyFfMFgbK8QlTw6ZCJtZ4dQE="

IMPORTING: Final = """
import time
wall, cpu = time.perf_counter(), time.process_time()
import shiftwork
print(time.perf_counter() - wall, time.process_time() - cpu)
"""

JOB: Final = """
import os
from shiftwork import WorkerOrchestrator
from shiftwork.control.calling import running_kind

app = WorkerOrchestrator(os.environ["STORE"])

@app.task
async def greet(name: str) -> str:
    return f"Hello {name}, from {running_kind()}"

app.blocking.start()
print(greet.enqueue_blocking(name="Ada").blocking.result(60))
app.blocking.stop()
"""

WEB: Final = """
import threading, time, urllib.request, uvicorn
from shiftwork import WorkerOrchestrator

server = uvicorn.Server(uvicorn.Config(WorkerOrchestrator("memory://").asgi(), port=0, log_level="error"))
thread = threading.Thread(target=server.run)
thread.start()
while not server.started:
    time.sleep(0.02)
port = server.servers[0].sockets[0].getsockname()[1]
page = urllib.request.urlopen(f"http://127.0.0.1:{port}/").read()
server.should_exit = True
thread.join()
print(f"the dashboard has {len(page)} bytes")
"""

SHOWN: Final = {
    "web": WEB,
    "otel": "import opentelemetry.trace; print('traces go to', type(opentelemetry.trace.get_tracer('x')).__name__)",
    "fast": "from shiftwork.store.sqlite import driver; print('SQLite', driver.driver.sqlite_version)",
}
"""What an extra adds, besides that the job runs."""


def main() -> None:
    """Print the findings; raises `AssertionError` at the first that is wrong."""
    wheel, sdist = built(TOP, "wheel"), built(TOP, "sdist")
    contents(wheel)
    nothing_foreign(wheel)
    same_from_sdist(wheel, sdist)
    bill_of_materials(wheel)
    types()
    run([TOOLS / "bin" / "twine", "--no-color", "check", "--strict", wheel, sdist], show=True)
    with tempfile.TemporaryDirectory() as folder:
        import_time(environment(Path(folder) / "plain", str(wheel)))
    with stores() as urls:
        for extra in ["", *extras()]:
            job(wheel, extra, urls)


def built(source: Path, target: str, folder: Path = OUT) -> Path:
    """Build the wheel or the sdist of a checkout."""
    run([sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", folder], cwd=source)
    return max(folder.glob("*.whl" if target == "wheel" else "*.tar.gz"), key=lambda path: path.stat().st_mtime)


def contents(wheel: Path) -> None:
    """Print the sizes by kind."""
    kinds: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    with ZipFile(wheel) as archive:
        for info in archive.infolist():
            for place, value in enumerate((1, info.file_size, info.compress_size)):
                kinds[kind(info.filename)][place] += value
    print(f"{wheel.name}: {wheel.stat().st_size:,} bytes")
    for name, (files, size, packed) in sorted(kinds.items(), key=lambda item: -item[1][2]):
        print(f"  {name:10} {files:4} files {size:10,} bytes, {packed:9,} packed")


def kind(name: str) -> str:
    """Return what a file of the wheel is."""
    if "/web/dist/" in name:
        return "dashboard"
    return "metadata" if ".dist-info/" in name else ENDINGS.get(PurePath(name).suffix, "other")


def nothing_foreign(wheel: Path) -> None:
    """Check that the licences of the dashboard are there, no tests, and no path of this machine."""
    with ZipFile(wheel) as archive:
        names = archive.namelist()
        paths = [name for name in names for path in (TOP, Path.home()) if f"{path}/".encode() in archive.read(name)]
    assert "shiftwork/web/dist/licenses.txt" in names
    assert not [name for name in names if re.match(r"(tests|benchmarks|examples|docs)/|.*/test_|.*\.pyc$", name)]
    assert not paths, f"these files name a folder of this machine: {paths}"


def same_from_sdist(wheel: Path, sdist: Path) -> None:
    """Check that the sdist makes the same wheel, without Node."""
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(sdist) as archive:
            archive.extractall(folder, filter="data")
        (source,) = Path(folder).iterdir()
        other = built(source, "wheel", Path(folder) / "out")
        with ZipFile(wheel) as one, ZipFile(other) as two:
            assert sorted(one.namelist()) == sorted(two.namelist())
            different = [name for name in one.namelist() if one.read(name) != two.read(name)]
    assert not different, f"the sdist makes other files: {different}"
    print(f"{sdist.name}: {sdist.stat().st_size:,} bytes, makes the same wheel")


def bill_of_materials(wheel: Path) -> None:
    """Write the SBOM beside the wheel, and check that it is valid CycloneDX."""
    path = write_sbom(wheel)
    run([TOOLS / "bin" / "python", "-c", VALID, path])
    print(f"{path.name}: {len(json.loads(path.read_text())['components'])} components")


def types() -> None:
    """Print what `pyright --verifytypes` thinks of the package."""
    command = [sys.executable, "-m", "basedpyright", "--verifytypes", "shiftwork", "--ignoreexternal", "--outputjson"]
    # It asks the first Python of the path where packages are.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    report = json.loads(run(command, more={"PATH": path}, ends={0, 1}))
    known, ambiguous, unknown = report["typeCompleteness"]["exportedSymbolCounts"].values()
    score = report["typeCompleteness"]["completenessScore"]
    print(f"pyright --verifytypes shiftwork: {score:.1%} of {known + ambiguous + unknown:,} exported symbols")
    assert score > LEAST_TYPED


def environment(folder: Path, *packages: str) -> Path:
    """Make a virtual environment, and return its Python."""
    run([sys.executable, "-m", "venv", folder])
    python = folder / "bin" / "python"
    run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages])
    return python


def import_time(python: Path) -> None:
    """Print how long `import shiftwork` takes."""
    run([python, "-c", IMPORTING])  # compiles it
    times = [[float(word) for word in run([python, "-c", IMPORTING]).split()] for _ in range(IMPORTS)]
    wall, cpu = (min(column) * 1000 for column in zip(*times, strict=True))
    print(f"import shiftwork: {wall:.0f} ms, {cpu:.0f} ms of CPU (best of {IMPORTS})")


def extras() -> list[str]:
    """Return the names of all extras."""
    return list(tomllib.loads((TOP / "pyproject.toml").read_text())["project"]["optional-dependencies"])


@contextmanager
def stores() -> Iterator[dict[str, str]]:
    """Run servers, and give the store that each extra is for."""
    with ExitStack() as stack:
        valkey = stack.enter_context(Server(required(wheel_binary() or binary("valkey-server"), "valkey-server")))
        postgres = own_server()
        postgres.start()
        stack.callback(postgres.remove)
        yield {"redis": valkey.url, "postgres": postgres.url}


def job(wheel: Path, extra: str, urls: Mapping[str, str]) -> None:
    """Install the wheel with one extra into an environment of its own, and run a job there."""
    with tempfile.TemporaryDirectory() as folder:
        name = f"shiftwork[{extra}]" if extra else "shiftwork"
        python = environment(Path(folder) / "env", f"{name} @ {wheel.as_uri()}")
        installed = [path.name for path in (Path(folder) / "env").glob("lib/*/site-packages/*.dist-info")]
        others = [package for package in installed if not package.startswith(("pip-", "setuptools-", "shiftwork-"))]
        settings = {"STORE": urls.get(extra, f"sqlite:///{folder}/jobs.db")}
        if extra in {"encryption", "all"}:
            settings["SHIFTWORK_ENCRYPTION_KEYS"] = KEY
        said = run([python, "-W", "error", "-c", JOB], more=settings).strip()
        more = run([python, "-c", SHOWN[extra]]).strip() if extra in SHOWN else ""
        print(f"{name}: {len(others)} packages; {said}" + (f"; {more}" if more else ""))


def run(
    command: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    more: Mapping[str, str] | None = None,
    show: bool = False,
    ends: Collection[int] = (0,),
) -> str:
    """Run a command, and return what it prints."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "SHIFTWORK_"))}
    ended = subprocess.run(command, cwd=cwd, env=clean | dict(more or {}), text=True, capture_output=True, check=False)
    assert ended.returncode in ends, f"{command}\n{ended.stdout}{ended.stderr}"
    if show:
        print(ended.stdout.strip())
    return ended.stdout


if __name__ == "__main__":
    main()
