"""shiftwork in a Django project: one app from the settings, tasks from the installed apps, jobs in transactions.

`in_transactions` is what people call; `tasks` is the backend of Django's tasks, which enqueues in the transaction of
its own option `database`. Importing this imports Django, but reads no settings: `app` is made when it is first used.
What every framework needs is in `app` and `web`; only what is Django's is here.
"""

from typing import TYPE_CHECKING, Any

from shiftwork.contrib.django.in_transactions import enqueue_in_transaction, enqueue_on_commit
from shiftwork.contrib.django.project_app import project_app
from shiftwork.errors import nearest

__all__ = ["app", "enqueue_in_transaction", "enqueue_on_commit"]

if TYPE_CHECKING:
    from shiftwork.app import WorkerOrchestrator

    app: WorkerOrchestrator
    """The app that the setting `SHIFTWORK` describes."""
else:

    def __getattr__(name: str) -> Any:
        """Return `app`, which is made when it is first needed: the settings may not be there before."""
        if name != "app":
            message = f"module 'shiftwork.contrib.django' has no attribute {name!r}; {nearest(name, __all__)}"
            raise AttributeError(message)
        return project_app()
