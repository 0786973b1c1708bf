"""Types for annotations: what methods return and take, besides the names that `shiftwork` itself exports.

Nothing in shiftwork imports this module, and a program needs it only to name a type.
"""

from typing import TYPE_CHECKING, Any

from shiftwork.app.blocking import BlockingOrchestrator
from shiftwork.app.declarations import WorkerDecorator
from shiftwork.app.testing import Trial
from shiftwork.control.jobs.filter import JobSearch, JobSelection
from shiftwork.core.health.health_values import Finding
from shiftwork.core.model.flows import FlowRecord
from shiftwork.core.model.jobs import Attempt, LogLine
from shiftwork.core.options.option_types import TimingOptions
from shiftwork.core.words import Duration
from shiftwork.core.workers.admission import Obstacle
from shiftwork.errors import nearest
from shiftwork.handles.flow import BlockingFlow, FlowStatus
from shiftwork.handles.job import BlockingJob, JobProgress, JobSummary
from shiftwork.runtime.clock import Clock, Timer
from shiftwork.runtime.context.context import BlockingContext, FlowCall
from shiftwork.store.protocol import Store
from shiftwork.views.explanation import Explanation
from shiftwork.views.instances import JobStack
from shiftwork.views.overview import BreakerView, NodePool, NodeView
from shiftwork.views.schedules import SchedulePreview, ScheduleView

__all__ = [
    "Api",
    "Attempt",
    "BlockingContext",
    "BlockingFlow",
    "BlockingJob",
    "BlockingOrchestrator",
    "BreakerView",
    "Clock",
    "Duration",
    "Explanation",
    "Finding",
    "FlowCall",
    "FlowRecord",
    "FlowStatus",
    "Identify",
    "JobProgress",
    "JobSearch",
    "JobSelection",
    "JobStack",
    "JobSummary",
    "LogLine",
    "NodePool",
    "NodeView",
    "Obstacle",
    "SchedulePreview",
    "ScheduleView",
    "Store",
    "Timer",
    "TimingOptions",
    "Trial",
    "Visitor",
    "WorkerDecorator",
]

if TYPE_CHECKING:
    from shiftwork.web.access import Identify, Visitor
    from shiftwork.web.api import Api
else:

    def __getattr__(name: str) -> Any:
        """Return a type of the web part, which needs the extra `web`."""
        if name in {"Identify", "Visitor"}:
            from shiftwork.web import access

            return getattr(access, name)
        if name == "Api":
            from shiftwork.web.api import Api

            return Api
        message = f"module 'shiftwork.types' has no attribute {name!r}; {nearest(name, __all__)}"
        raise AttributeError(message)
