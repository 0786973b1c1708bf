"""The HTTP API and the dashboard's files. It goes through `control` for everything, and runs no worker.

`server` serves `api`, an ASGI application; `api` finds one of the `routes`. What all requests share is in `site`;
errors with their status, and the dashboard's files, come from `responses`, the security headers of every answer from
`api`. Shapes of answers belong in `views.shapes`, and whatever another interface would need too in `control`.
"""
