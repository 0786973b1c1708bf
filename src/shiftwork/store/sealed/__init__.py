"""Encryption at rest: a layer around any store that encrypts what it writes and decrypts what it reads."""
