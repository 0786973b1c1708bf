"""How the company talks to others: by SMTP and by HTTP, with the clients of the standard library."""

from email.message import EmailMessage
from http import HTTPStatus
from http.client import HTTPConnection
from smtplib import SMTP
from typing import Final

from examples.company import place

PATIENCE_SECONDS: Final = 30.0


def mail(job_id: str, to: str, subject: str) -> None:
    """Hand a message to the mail server."""
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "company@example.com", f"{to}@example.com", subject
    message["X-Job"] = job_id
    message.set_content(f"Dear {to},\n\n{subject}.\n\nYours, the company\n")
    with SMTP(place.LOOPBACK, place.SMTP_PORT, local_hostname="company.example", timeout=PATIENCE_SECONDS) as server:
        server.send_message(message)


def post(job_id: str, path: str, body: str) -> None:
    """Send a request to another system. Raises ConnectionError if it does not reply with 200."""
    connection = HTTPConnection(place.LOOPBACK, place.HTTP_PORT, timeout=PATIENCE_SECONDS)
    try:
        connection.request("POST", path, body=body.encode(), headers={"X-Job": job_id})
        reply = connection.getresponse()
    finally:
        connection.close()
    if reply.status != HTTPStatus.OK:
        raise ConnectionError(f"{path} replied {reply.status} {reply.reason}")
