"""The day in pictures: planned and real curves over each other, as a page and as the picture in the README."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from examples.company.day import Day
from examples.company.outcome import Sample
from shiftwork.sim.report.chart import Chart, Curve
from shiftwork.sim.report.page import PageSection, page

SECONDS_AN_HOUR: Final = 3600
UNFORESEEN: Final = (
    "What a plan does not foresee is in the real curves alone: a process is killed at noon, the partner's web server is"
    " down from 4 to 6 PM, and the whole node is killed at 9 PM."
)


@dataclass(frozen=True)
class Curves:
    """Everything that is drawn. Two are planned, in virtual time, and two are real."""

    day: Day
    fixed_planned: Sequence[Sample]
    fixed_real: Sequence[Sample]
    elastic_planned: Sequence[Sample]
    elastic_real: Sequence[Sample]

    def named(self) -> Iterable[tuple[str, Sequence[Sample]]]:
        """The curves with their names, in the order in which they are drawn."""
        yield "elastic pools, real", self.elastic_real
        yield "elastic pools, planned", self.elastic_planned
        yield "ten fixed slots, real", self.fixed_real
        yield "ten fixed slots, planned", self.fixed_planned


def as_page(curves: Curves, checks: Sequence[str]) -> str:
    """One page of HTML that needs nothing else."""
    lead = (
        f"A day of 200,000 jobs, compressed to {curves.day.seconds:g} s and with 1 job for {curves.day.scale():,.0f}."
        " The planned curves were computed in virtual time, from the arrivals and the measured run times. The real ones"
        " were measured: images were resized, PDFs written, mail sent, rows exported, webhooks called."
    )
    drawn = [
        Chart(
            title="Waiting jobs",
            unit="jobs",
            start=0.0,
            curves=[_curve(curves, n, s, "queued") for n, s in curves.named()],
        ),
        Chart(
            title="Slots", unit="slots", start=0.0, curves=[_curve(curves, n, s, "slots") for n, s in curves.named()]
        ),
    ]
    text = [
        "The ten fixed slots were run for real from 9 AM to 2 PM only.",
        UNFORESEEN,
    ]
    sections = [
        PageSection(title="Planned and real", text=text, charts=drawn),
        PageSection(title="Verified", text=checks),
    ]
    return page("The company's day", sections, lead=lead)


def _curve(curves: Curves, name: str, samples: Sequence[Sample], what: str) -> Curve:
    shown = [sample for sample in samples if sample.seconds <= curves.day.seconds]
    hours = [curves.day.hour(sample.seconds) for sample in shown]
    values = [float(getattr(sample, what)) for sample in shown]
    return Curve(name, [(hour * SECONDS_AN_HOUR, value) for hour, value in zip(hours, values, strict=True)])
