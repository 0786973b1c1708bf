"""Values as a store keeps them: how much a job may have, what is encrypted or hidden, how large ones are shown.

Everything here works on bytes and limits, and knows no rule about jobs: those are in `core.jobs`.
"""
