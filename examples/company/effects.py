"""Verifies the work itself: what every completed job of the five kinds was to make is there, and can be opened."""

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from pypdf import PdfReader

from examples.company import orders, pictures, place
from examples.company.evidence import Ended, Evidence, Finding

Problem = str | None
NOT_WORTH_NAMING: Final = 3


def pictures_open(evidence: Evidence) -> Finding:
    """Every resized picture opens, and has the width that was asked for."""

    def problem(job: str, ended: Ended) -> Problem:
        width, _ = pictures.size_of(place.PICTURES / f"{job}.jpg")
        return None if width == ended.payload["width"] else f"is {width} pixels wide"

    return _found(evidence, "resize_image", "picture", "open in the right size", problem)


def documents_open(evidence: Evidence) -> Finding:
    """Every PDF opens in another program's strict reader, and has its customer's name on its first page."""

    def problem(job: str, ended: Ended) -> Problem:
        title = f"Statement of customer {ended.payload['customer']}\n"
        return None if _first_page(place.DOCUMENTS / f"{job}.pdf").startswith(title) else "has another title"

    return _found(evidence, "write_pdf", "PDF", "open with the right title", problem)


def exports_complete(evidence: Evidence) -> Finding:
    """Every CSV file has all rows of its customer."""

    def problem(job: str, _: Ended) -> Problem:
        rows = orders.rows_in(place.EXPORTS / f"{job}.csv")
        return None if rows == orders.ROWS_EACH else f"has {rows} rows"

    return _found(evidence, "export_rows", "CSV export", f"have all {orders.ROWS_EACH:,} rows", problem)


def mail_delivered(evidence: Evidence) -> Finding:
    """The mail server has every message, and has two only of a job that a kill interrupted."""
    return _received(evidence, "send_email", "mail", "mail", "the mail server has")


def webhooks_delivered(evidence: Evidence) -> Finding:
    """The partner has every webhook, and has two only of a job that a kill interrupted."""
    return _received(evidence, "call_webhook", "/webhooks 200", "webhook", "the partner has")


EFFECTS: Final = (pictures_open, documents_open, exports_complete, mail_delivered, webhooks_delivered)


def _first_page(path: Path) -> str:
    return PdfReader(path, strict=True).pages[0].extract_text()


def _found(evidence: Evidence, worker: str, noun: str, how: str, problem: Callable[[str, Ended], Problem]) -> Finding:
    jobs = evidence.completed_of(worker)
    wrong = []
    for job, ended in jobs.items():
        try:
            said = problem(job, ended)
        except Exception as error:  # noqa: BLE001 - whatever a reader raises, the file does not open
            said = f"does not open: {error!r}"
        if said is not None:
            wrong.append(f"{job} {said}")
    text = f"{len(jobs):,} {noun}s: {len(jobs) - len(wrong):,} {how}{_named(wrong)}"
    return Finding(bool(jobs) and not wrong, text)


def _received(evidence: Evidence, worker: str, mark: str, noun: str, who: str) -> Finding:
    jobs = evidence.completed_of(worker)
    times = Counter(one.subject for one in evidence.journal.marked(mark))
    missing = [f"{job} is missing" for job in jobs if not times[job]]
    twice = [job for job in jobs if times[job] > 1]
    needless = [f"{job} came {times[job]}×" for job in twice if job not in evidence.interrupted()]
    text = (
        f"{len(jobs):,} {noun}s: {who} {len(jobs) - len(missing):,},"
        f" {len(twice) or 'none'} twice (at least once: after a kill){_named([*missing, *needless])}"
    )
    return Finding(bool(jobs) and not missing and not needless, text)


def _named(wrong: Iterable[str]) -> str:
    named = [*wrong]
    more = len(named) - NOT_WORTH_NAMING
    return "".join(f"; {one}" for one in named[:NOT_WORTH_NAMING]) + (f"; and {more} more" if more > 0 else "")
