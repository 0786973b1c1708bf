"""The routes, one file for each kind of thing: each function is one route, with its query, body and answer as types.

How routes are found, read and authenticated is beside this folder; commands and questions are in `control`.
"""
