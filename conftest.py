"""The documentation is tested: every block of code in our pages is run, one test per page.

    python    run. All blocks of a document share one namespace, one empty folder and one event loop; `await` works at
              the top level, as in `python -m asyncio`. A block that begins with `# shop.py` or `# shop/mail.py` is
              written to that file, and imported; with `# shop.py, at the end` it is appended to the file. Beside a
              manage.py neither is imported: Django does that.
    console   the shell runs each `$ ` line in that folder, and it has to exit with 0. Its output has to match what is
              shown below it; `…` stands for anything. `shiftwork run … &` runs in the background, and is ended
              with SIGTERM by `kill %1`, or when the document ends; it has to exit with 0 too. So does a web server,
              which may end by the signal. `export A=b` is for the commands below it. `make` runs as `make -n`, which
              checks that the target exists without running the tests inside the tests.
    ts        written to the file that its first line names, `// orders.ts`, for `$ node orders.ts`; it can import the
              client from "shiftwork".
    text      shown, not run. With title="It prints" it has to match what the block of Python before it printed.

A block of Python with the title of a file, title="shop.py", belongs to a program for another library: it is shown here,
and `make originals` runs it (tests/docs/test_originals.py).

The ports 8437 and 8438 in a block are replaced by free ones each time, because documents are tested side by side.

Any other language, or none, is an error: nothing is skipped silently.
"""

import ast
import asyncio
import doctest
import importlib
import inspect
import io
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, chdir, redirect_stdout, suppress
from itertools import accumulate
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Self

import pytest
from sybil import Document, Example, Region
from sybil.evaluators.python import pad
from sybil.example import SybilFailure
from sybil.parsers.markdown.lexers import RawFencedCodeBlockLexer

from tests.node import install_client
from tests.ports import free_port

TOP: Final = Path(__file__).parent
FILE_NAME: Final = re.compile(r"# ([\w/]+\.py)(, at the end)?\n")
SCRIPT_NAME: Final = re.compile(r"// (\w+\.ts)\n")
LANGUAGE: Final = re.compile(r"(?P<language>[^\n]*)$\n", re.MULTILINE)
ORIGINAL: Final = re.compile(r'python title="\w+\.py"')
LIKE_THE_DOCUMENT: Final = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
COMMAND_SECONDS: Final = 30.0
THE_PORTS: Final = ("8437", "8438")
RUNNING: Final = re.compile(r" runs \d+ workers? in |Uvicorn running on|Starting development server at")
"""What `shiftwork run`, or a web server, prints once it runs."""


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect the documents."""
    ours = file_path.parent == TOP or TOP / "docs" in file_path.parents
    return DocumentFile.from_parent(parent, path=file_path) if ours and file_path.suffix == ".md" else None


class DocumentFile(pytest.File):
    """A document. It is one test, because its blocks build on each other and must run in one process."""

    def collect(self) -> Iterable[pytest.Item]:
        yield DocumentTest.from_parent(self, name="code")


class DocumentTest(pytest.Item):
    """Runs the blocks of a document from top to bottom."""

    def runtest(self) -> None:
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="shiftwork-docs-")))
            stack.enter_context(chdir(folder))
            reader = stack.enter_context(Reader(self.path.stem, folder))
            document = Document.parse(str(self.path), reader.blocks)
            document.namespace = reader.module.__dict__
            for example in document:
                example.evaluate()

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        return str(excinfo.value) if isinstance(excinfo.value, SybilFailure) else super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, f"the code in {self.path.relative_to(TOP)}"


class Reader:
    """A reader who tries everything in a document, in an empty folder."""

    def __init__(self, name: str, folder: Path) -> None:
        self.folder = folder
        self.module = ModuleType(f"document_{name}")
        self._ports = {port: str(free_port()) for port in THE_PORTS}
        self._loop = asyncio.Runner()
        self._printed = io.StringIO()
        self._beside: list[subprocess.Popen[str]] = []
        self._exported: dict[str, str] = {}
        self._lexer = RawFencedCodeBlockLexer(LANGUAGE)
        self._evaluators = {
            "python": self.run_python,
            "console": self.run_console,
            "ts": self.write_script,
            "text": _leave,
            'text title="It prints"': self.compare_printed,
        }

    def __enter__(self) -> Self:
        sys.modules[self.module.__name__] = self.module
        sys.path.insert(0, str(self.folder))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        try:
            self._end_those_beside()
            self._refuse_leftovers(document_failed=kind is not None)
        finally:
            self._loop.close()
            sys.path.remove(str(self.folder))
            for path in self.folder.rglob("*.py"):
                _forget(path.relative_to(self.folder))
            del sys.modules[self.module.__name__]

    def blocks(self, document: Document) -> Iterator[Region]:
        """Yield every block of code in the document, with its evaluator."""
        for region in self._lexer(document):
            language = region.lexemes["language"]
            region.parsed = region.lexemes["source"]
            region.evaluator = _leave if ORIGINAL.fullmatch(language) else self._evaluators.get(language, _refuse)
            yield region

    def _placed(self, source: str) -> str:
        return re.sub("|".join(self._ports), lambda shown: self._ports[shown[0]], source)

    # ── python ───────────────────────────────────────────────────────────────────────────────────────────────────

    def run_python(self, example: Example) -> None:
        """Run a block of Python."""
        named = FILE_NAME.match(example.parsed)
        if named:
            self._write_file(named[1], example, mode="a" if named[2] else "w")
            return
        source = pad(self._placed(example.parsed), example.line + example.parsed.line_offset)
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        code = compile(source, example.path, "exec", flags=flags, dont_inherit=True)
        self._printed = io.StringIO()
        with redirect_stdout(self._printed):
            pending = eval(code, example.namespace)  # noqa: S307 - our own documentation
            if inspect.iscoroutine(pending):
                self._loop.run(pending)

    def compare_printed(self, example: Example) -> str | None:
        """Compare what the last block of Python printed; returns what is wrong, or None."""
        return _difference(example.parsed, self._printed.getvalue())

    def _write_file(self, name: str, example: Example, *, mode: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open(mode) as file:
            file.write(self._placed(example.parsed))
        if (self.folder / "manage.py").exists():
            return
        _forget(Path(name))
        importlib.invalidate_caches()
        module = importlib.import_module(_module(Path(name)))
        example.namespace.update({key: value for key, value in vars(module).items() if not key.startswith("__")})

    def _refuse_leftovers(self, *, document_failed: bool) -> None:
        left = [task.get_name() for task in asyncio.all_tasks(self._loop.get_loop())]
        if left and not document_failed:
            message = f"the document leaves these running: {', '.join(sorted(left))}"
            raise AssertionError(message)

    # ── TypeScript ───────────────────────────────────────────────────────────────────────────────────────────────

    def write_script(self, example: Example) -> str | None:
        """Write a program, and install the client that it imports; returns what is wrong, or None."""
        named = SCRIPT_NAME.match(example.parsed)
        if named is None:
            return f"line {example.line}: a block in ts begins with the name of its file: // orders.ts"
        if not (self.folder / "node_modules").exists():
            install_client(self.folder)
        (self.folder / named[1]).write_text(self._placed(example.parsed))
        return None

    # ── console ──────────────────────────────────────────────────────────────────────────────────────────────────

    def run_console(self, example: Example) -> str | None:
        """Run a block of commands; returns what is wrong, or None."""
        for command, shown in _commands(self._placed(example.parsed)):
            if command == "kill %1":
                self._end_those_beside()
                continue
            wrong = self._begin(command, shown) if command.endswith("&") else self._run(command, shown)
            if wrong:
                return f"$ {command}\n{wrong}"
        return None

    def _run(self, command: str, shown: str) -> str | None:
        exported = re.fullmatch(r"export (\w+)=(\S+)", command)
        if exported:
            self._exported[exported[1]] = exported[2]
            return None
        made = re.fullmatch(r"make (\w+)(\s+#.*)?", command)
        if made:
            command = f"make -n -C '{TOP}' {made[1]} > /dev/null"
        ended = subprocess.run(
            ["/bin/sh", "-c", command],
            cwd=self.folder,
            env=_environment() | self._exported,
            text=True,
            timeout=COMMAND_SECONDS,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        if ended.returncode:
            return f"{ended.stdout}exit code {ended.returncode}"
        return _difference(shown, ended.stdout) if shown else None

    def _begin(self, command: str, shown: str) -> str | None:
        """Start a background command, wait until it logs that it runs, and compare what it has printed by then."""
        log = self.folder / f"beside-{len(self._beside)}.log"
        with log.open("w") as output:
            process = subprocess.Popen(
                ["/bin/sh", "-c", f"exec {command.removesuffix('&')}"],
                cwd=self.folder,
                env=_environment() | self._exported,
                text=True,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self._beside.append(process)
        deadline = time.monotonic() + COMMAND_SECONDS
        while not RUNNING.search(log.read_text()):
            if process.poll() is not None or time.monotonic() > deadline:
                return f"{log.read_text()}exit code {process.poll()}"
            time.sleep(0.02)
        return _difference(shown, log.read_text()) if shown else None

    def _end_those_beside(self) -> None:
        for number, process in enumerate(self._beside):
            process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(COMMAND_SECONDS)
            if process.poll() != 0 and not _ended_by_our_signal(process):
                process.kill()
                process.wait()
                said = (self.folder / f"beside-{number}.log").read_text()
                message = f"{process.args!r} ended with {process.returncode}:\n{said}"
                raise AssertionError(message)


def _ended_by_our_signal(process: subprocess.Popen[str]) -> bool:
    """Whether this is a web server, which ends itself by the signal that it was sent."""
    return "shiftwork" not in str(process.args) and process.returncode == -signal.SIGTERM


def _module(file: Path) -> str:
    return ".".join(file.with_suffix("").parts).removesuffix(".__init__")


def _forget(file: Path) -> None:
    """Have a file imported anew the next time, after a block has written another version of it."""
    for name in accumulate(_module(file).split("."), "{}.{}".format):  # and the packages that it is in
        sys.modules.pop(name, None)


def _leave(_: Example) -> None:
    """Do nothing: the block is only shown."""


def _difference(shown: str, printed: str) -> str | None:
    if doctest.OutputChecker().check_output(shown.replace("…", "..."), printed, LIKE_THE_DOCUMENT):
        return None
    return f"the document shows:\n{shown}\nit prints:\n{printed}"


def _refuse(example: Example) -> str:
    language = example.region.lexemes["language"]
    return f"line {example.line}: a block in {language!r}; mark a block that is not run with ```text"


def _commands(block: str) -> Iterator[tuple[str, str]]:
    """Yield the commands of a block, each with the output shown below it."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, shown = part.replace("\\\n", "").partition("\n")
        yield command.strip(), shown.strip()


def _environment() -> dict[str, str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return os.environ | {"PATH": path, "PYTHONUNBUFFERED": "1", "COLUMNS": "120", "NO_COLOR": "1"}
