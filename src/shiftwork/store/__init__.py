"""Where all state lives. Each store keeps the one contract of `shiftwork.store.protocol`."""
