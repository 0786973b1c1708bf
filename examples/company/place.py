"""Where the company keeps everything: one folder, which outlives every process that is killed in it."""

import os
import tempfile
from pathlib import Path
from typing import Final

HOME: Final = Path(os.environ.get("COMPANY_HOME") or Path(tempfile.gettempdir()) / "shiftwork-company").absolute()
STORE: Final = f"sqlite:///{HOME}/company.db"
FIXED: Final = os.environ.get("COMPANY_POOLS") == "fixed"
"""Whether ten fixed slots do all the work, as they did before, instead of elastic pools."""

FIXED_HOME: Final = HOME / "fixed"
"""Where the part with the ten fixed slots is played, in a company of its own."""

ORIGINALS: Final = HOME / "originals"
PICTURES: Final = HOME / "pictures"
DOCUMENTS: Final = HOME / "documents"
EXPORTS: Final = HOME / "exports"
LETTERS: Final = HOME / "letters"
ORDERS: Final = HOME / "orders.db"

LOOPBACK: Final = "127.0.0.1"
SMTP_PORT: Final = int(os.environ.get("COMPANY_SMTP_PORT") or 0)
HTTP_PORT: Final = int(os.environ.get("COMPANY_HTTP_PORT") or 0)

for folder in (ORIGINALS, PICTURES, DOCUMENTS, EXPORTS, LETTERS):
    folder.mkdir(parents=True, exist_ok=True)


def letters() -> list[Path]:
    """The letters that have arrived and are not yet answered."""
    return sorted(LETTERS.glob("*.letter"))


def put_letter(number: int) -> None:
    """Let a letter arrive."""
    (LETTERS / f"{number}.letter").touch()
