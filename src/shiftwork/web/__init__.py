"""The HTTP API and the dashboard's files. It goes through `control` for everything, and runs no worker."""
