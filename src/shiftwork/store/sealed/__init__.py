"""Encryption at rest: a layer around any store that encrypts what it writes and decrypts what it reads.

`key_ring` is where keys come from, how they encrypt, and how processes agree on them; `sealer` what of each record is
encrypted; `store` the layer. What an encrypted value looks like is in `shiftwork.core.values.envelopes`.
"""
