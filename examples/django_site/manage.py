"""A tiny shop in Django, with shiftwork. `python manage.py migrate`, then `python manage.py shiftwork run`."""

import os
import sys

from django.core.management import execute_from_command_line

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    execute_from_command_line(sys.argv)
