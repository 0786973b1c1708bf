"""Encryption at rest: a layer around any store that encrypts what it writes and decrypts what it reads.

`keys` is where keys come from and how they encrypt, `sealer` what of each record is encrypted, `store` the layer, and
`key_use` how processes agree on keys. What an encrypted value looks like is in `shiftwork.core.values.envelopes`.
"""
