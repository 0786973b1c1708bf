"""A program whose orchestrator lives in another module."""

import asyncio

import embedded

if __name__ == "__main__":
    asyncio.run(embedded.main())
