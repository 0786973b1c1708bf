"""What the end of a run does to its worker's standing: last ends, consecutive failures, automatic disabling."""

from shiftwork.core.model import Outcome, WorkerState


def after_run(state: WorkerState, outcome: Outcome) -> bool:
    """Change the state as an accepted outcome demands. True if that disabled the worker."""
    if not outcome.status.live:
        state.last_ended = max(state.last_ended or 0.0, outcome.ended_at)
    if outcome.verdict == "success":
        state.last_success = max(state.last_success or 0.0, outcome.ended_at)
        state.failures = 0
        state.last_error = None
    elif outcome.verdict == "failure":
        state.failures += 1
        state.last_error = outcome.error
    reached = outcome.disable_after is not None and state.failures >= outcome.disable_after
    if outcome.verdict != "failure" or not reached or not state.enabled:
        return False
    state.enabled = False
    state.reason = f"{state.failures} runs in a row failed, the last one with {outcome.error}"
    state.changed_at = outcome.ended_at
    return True
