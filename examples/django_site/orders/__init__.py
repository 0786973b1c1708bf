"""The one app of the shop."""
