"""Moving everything a namespace holds from one store to another. `moving.py` is the way in."""
