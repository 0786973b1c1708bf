"""The HTTP API and the dashboard's files. It asks an orchestrator and changes through it, and runs nothing itself."""
