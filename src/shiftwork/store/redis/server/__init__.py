"""The server under the store: its address, connections, bells, errors and scripts."""
