"""The company's parts: its day, its documents, the servers outside it, and its plan."""

import asyncio
import re
from pathlib import Path

import pytest
from pypdf import PdfReader

from examples.company import calls, documents, journal, place, plan
from examples.company.app import app
from examples.company.day import BY_HOUR, KINDS, Day
from examples.company.outcome import Sample
from examples.company.outside import serving
from examples.company.picture import draw
from examples.company.report import Curves, as_page


def test_the_day_has_the_shape_of_the_companys() -> None:
    day = Day(96.0)
    arrivals = day.arrivals()
    assert sum(BY_HOUR) == 200_000
    assert len(arrivals) * day.scale() == pytest.approx(200_000, rel=0.01)
    assert {kind for _, kind in arrivals} == set(KINDS)
    assert {kind for at, kind in arrivals if day.hour(at) < 6} == {"send_email", "call_webhook"}
    peak = [at for at, _ in arrivals if 10 <= day.hour(at) < 14]
    assert len(peak) == pytest.approx(0.55 * len(arrivals), rel=0.02)
    assert day.arrivals(9, 14) == [arrival for arrival in arrivals if 9 <= day.hour(arrival[0]) < 14]
    assert [day.clock(seconds) for seconds in (0.0, 40.0, 41.6, 96.0, 99.0)] == [
        *("00:00", "10:00", "10:24", "24:00", "24:00")
    ]


def test_a_document_is_read_by_other_programs_as_it_was_written(tmp_path: Path) -> None:
    lines = [f"{n} × an article (so called), 1\\2 €" for n in range(120)]
    assert documents.write(tmp_path / "a.pdf", lines) == 3
    pages = [page.extract_text().splitlines() for page in PdfReader(tmp_path / "a.pdf", strict=True).pages]
    assert [line for page in pages for line in page] == lines

    content = (tmp_path / "a.pdf").read_bytes()  # readers look for objects that are not where the table says
    entries = rb"xref\n0 (\d+)\n0000000000 65535 f \n((?:\d{10} 00000 n \n)+)trailer\n.*\nstartxref\n(\d+)\n%%EOF\n$"
    table = re.search(entries, content)
    assert table is not None
    assert content[int(table[3]) :].startswith(b"xref")
    begins = [int(line.split()[0]) for line in table[2].splitlines()]
    assert len(begins) == int(table[1]) - 1
    assert all(content[begin:].startswith(b"%d 0 obj\n" % n) for n, begin in enumerate(begins, start=1))


async def test_the_world_outside_speaks_smtp_and_http(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "PATH", tmp_path / "journal.jsonl")
    async with serving() as outside:
        monkeypatch.setattr(place, "SMTP_PORT", outside.smtp_port)
        monkeypatch.setattr(place, "HTTP_PORT", outside.http_port)
        outside.broken.add("/accounting")
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.to_thread(calls.mail, "m", "jo", ""))  # one line is a dot
            group.create_task(asyncio.to_thread(calls.post, "w", "/webhooks", "{}"))
        with pytest.raises(ConnectionError, match="503"):
            await asyncio.to_thread(calls.post, "b", "/accounting", "1")
    marks = [(mark.what, mark.subject) for mark in journal.read(journal.PATH).marks]
    assert sorted(marks) == [("/accounting 503", "b"), ("/webhooks 200", "w"), ("mail", "m")]


def test_the_plan_of_the_day_piles_up_with_ten_fixed_slots_and_not_with_elastic_pools() -> None:
    day = Day(96.0)
    workers, pools = app.registered()
    took = {
        "send_email": plan.Took(0.36, 0.4),
        "call_webhook": plan.Took(0.5, 0.6),
        "resize_image": plan.Took(0.1, 0.2),
    }
    crowded = took | {"resize_image": plan.Took(0.3, 0.7)}
    text = plan.scenario(day, pools, {kind: workers[kind].pool for kind in KINDS}, elastic=took, fixed=crowded)
    fixed, elastic = plan.planned(text, plan.FIXED), plan.planned(text, plan.ELASTIC)
    two_pm = [sample for sample in fixed if 13.5 < day.hour(sample.seconds) < 14]
    assert min(sample.queued for sample in two_pm) * day.scale() > 40_000
    assert 20 <= max(sample.slots for sample in elastic) < 25.5
    assert elastic[0].slots == pytest.approx(2)
    after = [sample.queued for sample in elastic if day.hour(sample.seconds) > 14.5]
    assert max(after) < 50


def test_planned_and_real_curves_are_drawn_over_each_other() -> None:
    curves = Curves(Day(96.0), *([Sample(4.0 * n, float(n + more), 2.0) for n in range(24)] for more in range(4)))
    page, picture = as_page(curves, ["✔ nothing lost"]), draw(curves)
    for name, _ in curves.named():
        assert page.count(f'data-label="{name}"') == 2, "once for the waiting jobs, once for the slots"
        assert f">{name}</text>" in picture
    assert picture.count("<polyline") == 8
    assert "✔ nothing lost" in page
