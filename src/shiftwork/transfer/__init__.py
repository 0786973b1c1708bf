"""Moving everything that a namespace holds to another store, and encrypting it with another key. `moving` is the way
in.

It works on two stores, or one, by their protocol: nothing here knows workers, payloads or a running node.
"""
