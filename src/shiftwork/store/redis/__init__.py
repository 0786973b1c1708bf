"""The store on a Redis or Valkey server: standalone, behind Sentinel, or a cluster. `store.py` is the entry point."""
