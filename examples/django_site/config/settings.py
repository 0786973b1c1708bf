"""The settings of the shop. What shiftwork needs is at the end."""

import os
from pathlib import Path

BASE_DIR = Path(os.environ.get("SHOP_DATA", Path(__file__).resolve().parent.parent))

SECRET_KEY = os.environ.get("SHOP_SECRET_KEY", "only-for-development")
DEBUG = True
ALLOWED_HOSTS = ["localhost", "127.0.0.1", "testserver"]
ROOT_URLCONF = "config.urls"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = [
    "shiftwork.contrib.django",  # before the admin, so that its first page links to the dashboard
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "orders",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": BASE_DIR / "shop.sqlite3"}}

SHIFTWORK = {
    "STORE": f"sqlite:///{BASE_DIR}/shiftwork.db",
    "POOLS": {"mail": {"kind": "thread", "max_workers": 4}},
    "DASHBOARD_URL": "http://127.0.0.1:8421/",
}
