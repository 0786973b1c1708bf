"""The shell around the core: asyncio and threads. It is handed a registry and a store; it does not know the app."""
