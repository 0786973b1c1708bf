"""A Django project for the cases, which pytest loads before it collects them."""

import os
from typing import Any
from uuid import uuid4

import django
from django.conf import settings
from psycopg.conninfo import conninfo_to_dict

URL = os.environ["CASES_POSTGRES_URL"]
BACKEND = "shiftwork.contrib.django.tasks.ShiftworkBackend"


def database(url: str) -> dict[str, Any]:
    info = conninfo_to_dict(url)
    names = {"USER": "user", "PASSWORD": "password", "HOST": "host", "PORT": "port", "NAME": "dbname"}
    known = {name: info.get(key) or "" for name, key in names.items()}
    return {"ENGINE": "django.db.backends.postgresql", "CONN_MAX_AGE": None, **known}


settings.configure(
    DATABASES={"default": database(URL), "lite": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    INSTALLED_APPS=["shiftwork.contrib.django"],
    USE_TZ=True,
    SHIFTWORK={
        "STORE": URL,
        "NAMESPACE": uuid4().hex,
        "POOLS": {"mail": {"kind": "thread", "max_workers": 1}, "slow": {}},
    },
    TASKS={
        "default": {"BACKEND": BACKEND, "QUEUES": ["default", "mail"]},
        "atomic": {"BACKEND": BACKEND, "OPTIONS": {"database": "default"}},
        "retrying": {"BACKEND": BACKEND, "OPTIONS": {"max_retries": 2}},
        "lost": {"BACKEND": BACKEND, "QUEUES": ["nowhere"]},
    },
)
django.setup()

try:
    from django.tasks import task, task_backends
except ImportError:
    from django_tasks import task, task_backends

__all__ = ["BACKEND", "URL", "task", "task_backends"]
