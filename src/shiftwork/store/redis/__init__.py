"""The store on a Redis or Valkey server: alone, behind Sentinel, or as a cluster. `store.py` is the way in."""
