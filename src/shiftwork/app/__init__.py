"""The orchestrator: registration and composition."""

from shiftwork.app.orchestrator import WorkerOrchestrator

__all__ = ["WorkerOrchestrator"]
