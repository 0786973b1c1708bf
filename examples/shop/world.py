"""The simulated world around the shop: pictures, mail, a bank, a mailbox and a partner that is down.

Its state is in files under one directory, so it survives when the process that serves the shop is killed.
"""

import asyncio
import os
import tempfile
import time
from pathlib import Path
from typing import Final

HOME: Final = Path(os.environ.get("SHOP_HOME") or Path(tempfile.gettempdir()) / "shiftwork-shop").absolute()
"""Where the shop keeps its store, its journal and its world."""
STORE: Final = f"sqlite:///{HOME}/shop.db"

MAILBOX: Final = HOME / "mailbox"
PARTNER_IS_UP: Final = HOME / "partner-is-up"
BANK_NEEDS: Final = 3
"""How many attempts it takes until the bank responds."""

MAILBOX.mkdir(parents=True, exist_ok=True)


def resize(path: str, width: int) -> str:
    """Make a picture smaller, if the file is one."""
    time.sleep(0.25)
    if not path.endswith(".jpg"):
        raise ValueError(f"{path} is not a picture")
    return f"{path}-{width}.webp"


async def deliver(to: str) -> None:
    """Hand a mail to the mail server."""
    await asyncio.sleep(0.4 + len(to) % 3 / 10)


async def charge(order: int, *, attempt: int) -> None:
    """Ask the bank for the money."""
    await asyncio.sleep(0.1)
    if attempt < BANK_NEEDS:
        raise TimeoutError(f"the bank did not respond to order {order}")


async def tell_partner(order: int) -> None:
    """Call the partner's webhook."""
    await asyncio.sleep(0.15)
    if not PARTNER_IS_UP.exists():
        raise ConnectionError(f"partner.example returned 502 for order {order}")


def letters() -> list[Path]:
    """The letters in the mailbox."""
    return sorted(MAILBOX.glob("*.letter"))


def put_letter(number: int) -> None:
    """Put a letter into the mailbox."""
    (MAILBOX / f"{number}.letter").touch()
