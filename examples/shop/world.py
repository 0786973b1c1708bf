"""The world around the shop, made up: pictures, mail, a bank, a mailbox and a partner who is down.

Its state is files under one directory, so that the process that serves the shop can be killed and the world goes on.
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
"""How many attempts it takes until the bank answers."""

MAILBOX.mkdir(parents=True, exist_ok=True)


def resize(path: str, width: int) -> str:
    """Make a picture smaller; as long as it is one."""
    time.sleep(0.25)
    if not path.endswith(".jpg"):
        raise ValueError(f"{path} is not a picture")
    return f"{path}-{width}.webp"


async def deliver(to: str) -> None:
    """Hand a mail over to the mail server."""
    await asyncio.sleep(0.4 + len(to) % 3 / 10)


async def charge(order: int, *, attempt: int) -> None:
    """Ask the bank for the money."""
    await asyncio.sleep(0.1)
    if attempt < BANK_NEEDS:
        raise TimeoutError(f"the bank did not answer about order {order}")


async def tell_partner(order: int) -> None:
    """Call the partner's webhook."""
    await asyncio.sleep(0.15)
    if not PARTNER_IS_UP.exists():
        raise ConnectionError(f"partner.example answers 502 to order {order}")


def letters() -> list[Path]:
    """What lies in the mailbox."""
    return sorted(MAILBOX.glob("*.letter"))


def put_letter(number: int) -> None:
    """Somebody writes to the shop."""
    (MAILBOX / f"{number}.letter").touch()
