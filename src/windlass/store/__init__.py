"""Where all state lives. Each store keeps the one contract of `windlass.store.protocol`."""
