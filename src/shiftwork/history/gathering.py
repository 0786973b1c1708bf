"""From the lines of each process to one `RecordedHistory`: calls meet their answers, and jobs what happened to them."""

from collections.abc import Callable, Iterable
from math import inf
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import force_setattr

from shiftwork.history.effects import Effect
from shiftwork.history.gathered import (
    Beating,
    DocsCall,
    OtherCall,
    PlaceCall,
    RecordedHistory,
    Switching,
    line_number,
)
from shiftwork.history.lines import (
    ANSWERS,
    ARGS,
    VERSION,
    AddAnswer,
    AddArgs,
    AddedJob,
    AmendAnswer,
    AmendArgs,
    Answered,
    AnyLine,
    Asked,
    BeatAnswer,
    BeatArgs,
    Began,
    ClaimAnswer,
    ClaimArgs,
    Defined,
    DocsArgs,
    Ended,
    Expected,
    ExtendArgs,
    Failed,
    Fault,
    FinishAnswer,
    FinishArgs,
    FinishedJob,
    Opened,
    PlaceArgs,
    ReapArgs,
    SendArgs,
    StepArgs,
    Stepped,
    SwitchArgs,
)
from shiftwork.history.stories import (
    Addition,
    Amendment,
    Ending,
    Extension,
    Handout,
    JobStory,
    Keeping,
    RunLine,
    Sending,
)

WRONG_VERSION: Final = "it has format {}, and this shiftwork reads format {}"


class Gatherer:
    """Puts a history together, file by file. Each file has the lines of one process, in their order."""

    def __init__(self) -> None:
        self.history: RecordedHistory = RecordedHistory()
        self._texts: dict[str, str] = {}
        self._pending: dict[int, tuple[Asked, int]] = {}
        self._defined: dict[str, dict[str, Any]] = {}
        self._file = -1
        self._of_line: dict[type, Callable[[Any, int], None]] = {
            Opened: self._opened,
            Defined: self._define,
            Asked: self._ask,
            Answered: self._answered,
            Failed: self._failed,
            Began: self._began,
            Ended: self._ended,
            Stepped: self._stepped,
            Fault: self._fault,
            Expected: self._expect,
        }
        self._of_call: dict[str, Callable[[Any, Any, Effect], None]] = {
            "add": self._add,
            "extend": self._extend,
            "claim": self._claim,
            "reap": self._reap,
            "finish": self._finish,
            "keep_step": self._keep,
            "send": self._send,
            "amend": self._amend,
            "beat": self._beat,
            "hold": self._hold,
            "drop": self._drop,
            "switch": self._switch,
            "put": self._docs,
            "erase": self._docs,
        }

    def file(self, name: str, lines: Iterable[AnyLine]) -> None:
        """Take the lines of one process."""
        self.begin(name)
        for number, line in enumerate(lines, 1):
            self.take(line, number)
        self.end()

    def begin(self, name: str) -> None:
        """Begin a file."""
        self._file += 1
        self._defined = self.history.begin_process(name)

    def take(self, line: AnyLine, number: int) -> None:
        """Take the next line of the file. Raises `ValueError` if its format is another one."""
        self.history.lines += 1
        self._of_line[type(line)](line, line_number(self._file, number))

    def end(self) -> None:
        """End a file. What has no answer by now will never have one."""
        for asked, line in self._pending.values():
            self._call(asked, line, None, None)
        self._pending.clear()

    def whole(self) -> RecordedHistory:
        """Return the history, once all files are in."""
        self.history.close()
        return self.history

    # ── lines ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _opened(self, line: Opened, _number: int) -> None:
        if line.version != VERSION:
            raise ValueError(WRONG_VERSION.format(line.version, VERSION))
        self.end()
        self.history.opened.append(line)
        self.history.stores[-1] = line.store

    def _define(self, line: Defined, _number: int) -> None:
        if line.kind == "worker":
            self._defined[line.name] = line.config

    def _ask(self, line: Asked, number: int) -> None:
        self._pending[line.number] = line, number

    def _answered(self, line: Answered, number: int) -> None:
        asked = self._pending.pop(line.number, None)
        if asked is not None:
            self._call(*asked, line, number)

    def _failed(self, line: Failed, _number: int) -> None:
        asked = self._pending.pop(line.number, None)
        if asked is not None and line.maybe:
            self._call(*asked, None, None)

    def _began(self, line: Began, number: int) -> None:
        self.history.runs += 1
        tenure = self._story(line.job).tenure(line.fence)
        tenure.begun = (*tenure.begun, RunLine(number, line.at))

    def _ended(self, line: Ended, number: int) -> None:
        tenure = self._story(line.job).tenure(line.fence)
        tenure.over = (*tenure.over, RunLine(number, line.at, kind=self._text(line.kind)))

    def _stepped(self, line: Stepped, number: int) -> None:
        tenure = self._story(line.job).tenure(line.fence)
        if not tenure.stepped:
            tenure.stepped = []
        tenure.stepped.append(RunLine(number, line.at, step=line.step))

    def _fault(self, line: Fault, number: int) -> None:
        self.history.faults.append((number, line))

    def _expect(self, line: Expected, number: int) -> None:
        self.history.expected = number, line
        opened = self.history.opened[-1]
        self.history.note_reading(opened.at, opened.now)  # by the same clock as what it expects

    # ── calls ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _call(self, asked: Asked, line: int, answered: Answered | None, answer_line: int | None) -> None:
        effect = Effect(
            asked=line,
            asked_at=asked.at,
            now=asked.now,
            answered=answer_line,
            answered_at=inf if answered is None else answered.at,
            order=None if answered is None else answered.order,
        )
        self.history.effects.append(effect)
        if asked.now is not None:
            self.history.note_clock(asked.at, asked.now)
        args = _read(asked.args, ARGS[asked.call])
        answer = None if answered is None else _read(answered.answer, ANSWERS[asked.call])
        take = self._of_call.get(asked.call)
        if take is None or (effect.answered is None and asked.call in {"claim", "reap"}):
            self.history.others.setdefault(asked.call, []).append(OtherCall(effect, args, answer))
        else:
            take(args, answer, effect)

    def _add(self, args: AddArgs | ExtendArgs, answer: AddAnswer | None, effect: Effect) -> None:
        if answer is None:
            for job in args.jobs:
                self._added(job, job.id, None, effect)
        else:
            for job, (id, created) in zip(args.jobs, answer.added or (), strict=False):
                self._added(job, id, created, effect)

    def _added(self, job: AddedJob, id: str, created: bool | None, effect: Effect) -> None:  # noqa: FBT001 - as answered
        story = self._story(id, job.worker)
        same = job.id == id
        force_setattr(job, "id", story.id if same else job.id)
        for field in ("worker", "pool", "cause"):
            force_setattr(job, field, self._text(getattr(job, field)))
        story.note_addition(Addition(effect, job, created))

    def _extend(self, args: ExtendArgs, answer: AddAnswer | None, effect: Effect) -> None:
        done = None if answer is None else answer.added is not None
        tenure = self._story(args.parent).tenure(args.fence)
        tenure.extensions = (*tenure.extensions, Extension(effect, done))
        if done is not False:
            self._add(args, answer, effect)

    def _claim(self, args: ClaimArgs, answer: ClaimAnswer, effect: Effect) -> None:
        self._hand_out(args.instance, answer, effect)

    def _reap(self, args: ReapArgs, answer: ClaimAnswer, effect: Effect) -> None:
        self._hand_out(args.holder, answer, effect)

    def _hand_out(self, who: str, answer: ClaimAnswer, effect: Effect) -> None:
        instance = self._text(who)
        for job in answer.jobs:
            story = self._story(job.id, job.worker)
            handout = Handout(
                effect=effect,
                worker=story.worker,
                attempt=job.attempt,
                crashes=job.crashes,
                run_at=job.run_at,
                instance=instance,
                lost_by=None if job.instance is None else self._text(job.instance),
            )
            tenure = story.tenure(job.fence)
            if tenure.handout is None:
                tenure.handout = handout
            else:
                tenure.again = (*tenure.again, handout)

    def _finish(self, args: FinishArgs, answer: FinishAnswer | None, effect: Effect) -> None:
        accepted: Iterable[bool | None] = [None] * len(args.outcomes) if answer is None else answer.accepted
        for outcome, one in zip(args.outcomes, accepted, strict=False):
            tenure = self._story(outcome.id).tenure(outcome.fence)
            tenure.endings = (*tenure.endings, self._ending(outcome, one, effect))
        for worker in answer.disabled if answer else ():
            self.history.switches.append(Switching(effect, self._text(worker), enabled=False, certain=True))

    def _ending(self, outcome: FinishedJob, accepted: bool | None, effect: Effect) -> Ending:  # noqa: FBT001 - as answered
        return Ending(
            effect=effect,
            status=self._text(outcome.status),
            attempt=outcome.attempt,
            crashes=outcome.crashes,
            run_at=outcome.run_at,
            keeps_rank=outcome.keeps_rank,
            verdict=self._text(outcome.verdict),
            report=None if outcome.report is None else self._text(outcome.report),
            result=outcome.result,
            wait=outcome.wait,
            accepted=accepted,
        )

    def _keep(self, args: StepArgs, answer: bool | None, effect: Effect) -> None:  # noqa: FBT001 - as answered
        tenure = self._story(args.id).tenure(args.fence)
        keeping = Keeping(
            effect,
            step=args.step,
            name=args.name,
            result=args.result,
            taking=args.taking,
            kept=None if effect.answered is None else answer,
        )
        if not tenure.keepings:
            tenure.keepings = []
        tenure.keepings.append(keeping)

    def _send(self, args: SendArgs, answer: str | None, effect: Effect) -> None:
        story = self._story(args.id)
        if not story.sendings:
            story.sendings = []
        story.sendings.append(Sending(effect, args.name, answer and self._text(answer)))

    def _amend(self, args: AmendArgs, answer: AmendAnswer | None, effect: Effect) -> None:
        unknown: list[tuple[bool | None, str | None]] = [(None, None)] * len(args.ids)
        for id, (done, status) in zip(args.ids, answer.amended if answer else unknown, strict=False):
            story = self._story(id)
            change = Amendment(effect, args.change, done, status and self._text(status))
            story.amendments = (*story.amendments, change)

    def _beat(self, args: BeatArgs, answer: BeatAnswer | None, effect: Effect) -> None:
        self.history.beats.append(Beating(effect, args, () if answer is None else tuple(answer.lost)))

    def _hold(self, args: PlaceArgs, answer: bool | None, effect: Effect) -> None:  # noqa: FBT001 - as answered
        granted = None if effect.answered is None else answer
        self.history.place_calls.append(PlaceCall(effect, args, granted, drops=False))

    def _drop(self, args: PlaceArgs, _answer: None, effect: Effect) -> None:
        self.history.place_calls.append(PlaceCall(effect, args, None, drops=True))

    def _switch(self, args: SwitchArgs, _answer: None, effect: Effect) -> None:
        certain = effect.answered is not None
        self.history.switches.append(Switching(effect, self._text(args.worker), args.enabled, certain))

    def _docs(self, args: DocsArgs, answer: list[bool] | None, effect: Effect) -> None:
        self.history.doc_calls.append(DocsCall(effect, args.docs, answer))

    # ── jobs and texts ───────────────────────────────────────────────────────────────────────────────────────────

    def _story(self, id: str, worker: str = "") -> JobStory:
        story = self.history.stories.get(id)
        if story is None:
            story = self.history.stories[id] = JobStory(id)
        if worker and not story.worker:
            story.worker = self._text(worker)
        return story

    def _text(self, text: str) -> str:
        """Return the one copy of a text that is said again and again."""
        return self._texts.setdefault(text, str(text))


def _read(value: Any, kind: Any) -> Any:
    """Return a value of a line as what it stands for. In memory, it may be that already."""
    if isinstance(kind, type) and issubclass(kind, Struct) and isinstance(value, kind):
        return value
    return None if value is None else msgspec.convert(value, kind)
