"""Sets up Django and holds its app, for `shiftwork run` and the processes that it starts.

The project is found by `DJANGO_SETTINGS_MODULE`, as everywhere in Django. Code of the project imports `app` from
`shiftwork.contrib.django` instead.
"""

from typing import Final

import django

from shiftwork.contrib.django.project_app import project_app

django.setup()
app: Final = project_app()
