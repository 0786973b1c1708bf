"""A program whose orchestrator lives in another module."""

import asyncio

import embedded  # type: ignore[import-not-found]  # beside this file, when it is run

if __name__ == "__main__":
    asyncio.run(embedded.main())
