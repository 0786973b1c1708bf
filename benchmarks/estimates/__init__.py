"""Estimates of when jobs start, against when they did: simulated queues in virtual time, and a picture of them."""
