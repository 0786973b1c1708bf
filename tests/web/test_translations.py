"""The dashboard translates our sentences by their templates: its catalogue has each template in the code, and no other.

What a user named, a person wrote or an error says is a value, and is never translated.
"""

import ast
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
import pytest
from msgspec import Meta

from shiftwork import WorkerOrchestrator
from shiftwork.core.health.health_values import CODES, HealthFacts, Problem
from shiftwork.core.health.verdict import judge
from shiftwork.core.model.event import Event
from shiftwork.core.model.workers import WorkerState
from shiftwork.core.observing.event_rows import EventRow, text_of
from shiftwork.core.options.configs import check_schedule, timing
from shiftwork.core.schedules.cron import cron_words
from shiftwork.core.schedules.cron_sentences import PHRASES as CRON_PHRASES
from shiftwork.core.values.misfits import MISFIT_PHRASES as MISFITS
from shiftwork.core.values.misfits import misfit
from shiftwork.core.workers.state import reason_of
from shiftwork.errors import ConfigurationError
from shiftwork.sentences import error_text, parts_of, plain, restored, sentence, series
from shiftwork.store.redis.server.faults import unreachable
from shiftwork.views.diagnosis import remedy
from shiftwork.web.responses import SENTENCES_HEADER, encoder
from tests.core.test_health import NOW, WRONG
from tests.node import node as run_in_node
from tests.web.conftest import Web

MAKERS: Final = {"sentence", "say", "series"}
"""What makes sentences: the first argument is a template, or a joint."""
NOT_LITERAL: Final = {
    *("sentences", "core/words", "core/schedules/cron_sentences", "core/values/misfits"),
}
"""Where templates come from a table; all of them are below."""
FROM_TABLES: Final = {
    *CRON_PHRASES,
    *MISFITS,
    *("{n} min", "{n} h", "{n} d", "{n} seconds", "{n} minutes", "{n} hours", "{n} days", ", and ", " and "),
}
WORDS_OF_THE_API: Final = {
    *("high", "normal", "low", "critical", "skip", "queue", "allow", "latest", "enqueued"),
}
"""Values of fields that the dashboard shows as words: the values are the codes."""
HOLE: Final = re.compile(r"\{(\w+)\}")
ENGLISH_ALONE: Final = {"are"}
"""Holes for forms of a verb that other languages have not."""
KEY: Final = "a-key-1"
LANGUAGES: Final = ["zh-CN"]


def catalogue(checkout: Path, language: str) -> dict[str, str]:
    found: dict[str, str] = json.loads((checkout / f"ui/src/languages/{language}.sentences.json").read_text())
    return found


def messages(checkout: Path, language: str) -> set[str]:
    """Return the dashboard's own messages that have no hole: among them are words that the server writes too."""
    text = (checkout / f"ui/src/languages/{language}.ts").read_text()
    return set(re.findall(r'^  "?([^"{}\n]+?)"?: "', text, re.MULTILINE))


def modules(checkout: Path) -> Iterator[tuple[str, ast.Module]]:
    root = checkout / "src/shiftwork"
    for path in root.rglob("*.py"):
        name = path.relative_to(root).with_suffix("").as_posix()
        english = name.startswith(("cli/", "history/", "sim/", "simulation/"))  # the command line speaks English only
        if not english or name == "sim/what_if":
            yield name, ast.parse(path.read_text())


def calls(tree: ast.Module) -> Iterator[tuple[str, ast.Call]]:
    for one in ast.walk(tree):
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Name):
            yield one.func.id, one


def templates(checkout: Path) -> dict[str, str]:
    """Return every template and every joint in the code, with a module that has it."""
    found = dict.fromkeys(FROM_TABLES, "a table")
    for module, tree in modules(checkout):
        for name, call in calls(tree):
            if name in MAKERS and isinstance(call.args[0], ast.Constant):
                found[str(call.args[0].value)] = module
            elif name in MAKERS:
                assert module in NOT_LITERAL, f"{module}:{call.lineno}: a template is a literal"
            elif name == "counted":
                noun, *plural = [str(arg.value) for arg in call.args[1:] if isinstance(arg, ast.Constant)]
                found |= {f"1 {noun}": module, f"{{n}} {plural[0] if plural else f'{noun}s'}": module}
    return found


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_template_is_translated(checkout: Path, language: str) -> None:
    known = catalogue(checkout, language).keys() | messages(checkout, language)
    missing: defaultdict[str, list[str]] = defaultdict(list)
    for template, module in templates(checkout).items():
        if template not in known:
            missing[module].append(template)
    assert missing == {}


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_translation_is_one_of_a_template(checkout: Path, language: str) -> None:
    assert catalogue(checkout, language).keys() - templates(checkout).keys() - WORDS_OF_THE_API == set()


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_translation_has_the_holes_of_its_template(checkout: Path, language: str) -> None:
    for template, translation in catalogue(checkout, language).items():
        assert {*HOLE.findall(translation)} == {*HOLE.findall(template)} - ENGLISH_ALONE, template


def test_every_hole_has_a_value(checkout: Path) -> None:
    for module, tree in modules(checkout):
        for name, call in calls(tree):
            if name in MAKERS - {"series"} and isinstance(call.args[0], ast.Constant):
                given = {one.arg for one in call.keywords}
                assert given == {*HOLE.findall(str(call.args[0].value))}, f"{module}:{call.lineno}"


@pytest.mark.parametrize("facts", [row[0] for row in WRONG], ids=[row[1] for row in WRONG])
def test_every_problem_and_what_to_do_about_it_are_sentences(facts: HealthFacts) -> None:
    for problem in judge(facts, NOW).problems:
        texts = {problem.message, problem.remedy, remedy(problem)}
        assert {text for text in texts if parts_of(text) is None} == set()


def test_every_command_for_a_problem_is_a_sentence() -> None:
    unsaid = [Problem(code, "w", "", "") for code in CODES]
    commands = {one.code: text for one in unsaid if (text := remedy(one))}
    assert "no_leader" in commands
    assert {code for code, text in commands.items() if parts_of(text) is None} == set()


# ── as the dashboard shows them ──────────────────────────────────────────────────────────────────────────────────────

TELL: Final = """
import { readFileSync, writeFileSync } from "node:fs";
const [, , folder, language, key, file] = process.argv;
const { teller } = await import(`file://${folder}/sentences.ts`);
const { default: words } = await import(`file://${folder}/languages/${language}.ts`);
const sentences = JSON.parse(readFileSync(`${folder}/languages/${language}.sentences.json`, "utf8"));
const wordOf = (template) => sentences[template] ?? words[template] ?? template;
writeFileSync(file, JSON.stringify(JSON.parse(readFileSync(file, "utf8"), teller(key, wordOf))));
"""


def shown(checkout: Path, folder: Path, answer: bytes, language: str = "zh-CN") -> Any:
    """Return what the dashboard makes of an answer."""
    file = folder / "answer.json"
    file.write_bytes(answer)
    (folder / "tell.mjs").write_text(TELL)
    run_in_node(folder / "tell.mjs", checkout / "ui/src", language, KEY, file, cwd=folder)
    return json.loads(file.read_text())


def said(checkout: Path, folder: Path, sentences: list[str]) -> list[str]:
    """Return sentences as the dashboard shows them."""
    found: list[str] = shown(checkout, folder, encoder(KEY)(sentences))
    return found


CRON: Final = {
    "0 3 * * *": "每天 03:00",
    "*/7 * * * *": "每小时内每 7 分钟",
    "5,35 * * * *": "每小时的第 5、35 分钟",
    "0 9-17 * * 1-5": "每周一到周五 9 点到 17 点每小时整点",
    "30 8,18 * * MON,WED,FRI": "每周一、周三、周五 08:30、18:30",
    "0 0 1,15 * *": "每月 1 日、15 日 00:00",
    "0 0 L * *": "每月最后一天 00:00",
    "0 0 2 */3 *": "每 3 个月的 2 日 00:00",
    "0 9 * * 2#2": "每月第 2 个周二 09:00",
    "*/10 9-17 * * *": "09:00 到 17:59 每 10 分钟",
    "0 3 * 6-8 *": "6 月到 8 月每天 03:00",
    "0 6 31 12 *": "每年 12 月 31 日 06:00",
}


def test_schedules_are_worded_in_chinese(checkout: Path, tmp_path: Path) -> None:
    english = [cron_words(cron, "Asia/Shanghai") for cron in CRON]
    schedules = said(checkout, tmp_path, english)
    assert [one.removesuffix("Asia/Shanghai")[:-1] for one in schedules] == list(CRON.values())


FAULTS: Final = [
    "调度 有 2 个问题：",
    "  - cron '0 25 * * *' 无法读取：小时有误",
    "  - timezone 'Shanghai' 不是时区；您是指 'Asia/Shanghai' 吗？",
]


def test_several_faults_at_once_are_worded_in_chinese(checkout: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as faults:
        timing(sentence("a schedule"), {"cron": "0 25 * * *", "timezone": "Shanghai"})
    [several] = said(checkout, tmp_path, [error_text(faults.value)])
    assert several.splitlines() == FAULTS


def test_rejections_are_worded_in_chinese(checkout: Path, tmp_path: Path) -> None:
    wrong: list[tuple[Any, Mapping[str, Any]]] = [
        (Annotated[int, Meta(ge=1)], {"value": 0}),
        (Annotated[str, Meta(min_length=1)], {"value": ""}),
        (Literal["fit"], {"value": "fill"}),
        (int, {"value": "wide"}),
        (int, {"other": 1}),
    ]
    english = []
    for kind, body in wrong:
        with pytest.raises(msgspec.ValidationError) as refused:
            msgspec.convert(body, msgspec.defstruct("Wrong", [("value", kind)]))
        english.append(sentence("the body is not valid: {fault}", fault=misfit(str(refused.value))))
    with pytest.raises(ConfigurationError) as named:
        check_schedule(" nightly", catch_up="all", overlap="skip")
    for text in said(checkout, tmp_path, [*english, error_text(named.value)]):
        assert not re.search(r"[A-Za-z]{3,}", re.sub(r"`[^`]*`|'[^']*'", "", text)), text


def test_a_server_that_cannot_be_reached_is_worded_in_chinese(checkout: Path, tmp_path: Path) -> None:
    away = error_text(unreachable(ConnectionRefusedError(), "127.0.0.1:6379"))
    assert said(checkout, tmp_path, [away]) == [
        "无法连接 127.0.0.1:6379 上的服务器：那里没有服务在监听。请启动服务器\uff0c或更正 URL 中的主机和端口。"
    ]


# ── what is not ours ─────────────────────────────────────────────────────────────────────────────────────────────────

POOL: Final = "paused"
WORKER: Final = "worker paused is disabled"
REASON: Final = "pool paused is paused"
"""Names and a reason like words and sentences of ours."""


@pytest.fixture
def shop_of_words() -> WorkerOrchestrator:
    app = WorkerOrchestrator("memory://")
    app.register_pool(POOL, min_workers=1, max_workers=2)

    @app.task(pool=POOL, name=WORKER)
    def work(what: dict[str, Any]) -> None: ...

    return app


async def test_what_users_named_is_not_translated(
    shop_of_words: WorkerOrchestrator, checkout: Path, tmp_path: Path
) -> None:
    web = Web(shop_of_words)
    await web.post(f"pools/{POOL}/pause", {"reason": REASON})
    await web.post(f"workers/{WORKER}/disable", {"reason": "disabled"})
    payload = {"what": {"another-key": ["queued", {}]}}
    job = (await web.post("jobs", {"worker": WORKER, "payload": payload})).json()["job"]["id"]

    async def read(path: str) -> Any:
        async with web.client() as client:
            return shown(checkout, tmp_path, (await client.get(path, headers={SENTENCES_HEADER: KEY})).content)

    waits = (await read(f"jobs/{job}/explanation"))["waits"]
    assert [re.sub("，自 .*", "", wait["why"]) for wait in waits] == [
        f"工作池 {POOL} 已暂停：{REASON}",
        f"worker {WORKER} 已禁用：disabled",
    ]
    assert (await read(f"jobs/{job}"))["payload"] == payload
    worker = await read(f"workers/{WORKER}")
    assert (worker["name"], worker["pool"], worker["reason"]) == (WORKER, POOL, "disabled")
    texts = [event["text"] for event in (await read("events"))["events"]]
    assert f"工作池 {POOL} 已暂停，原因：{REASON}" in texts
    assert f"worker {WORKER} 已禁用：disabled" in texts
    english = [event["text"] for event in (await web.get("events"))["events"]]
    assert f"pool {POOL} is paused: {REASON}" in english
    await web.site.close()
    await shop_of_words.close()


def test_a_reason_is_translated_only_if_no_person_wrote_it(checkout: Path, tmp_path: Path) -> None:
    failed = WorkerState(worker="w", enabled=False, failures=3, last_error="queued")
    failed.reason = "3 runs in a row failed, the last one with queued"
    by_hand = WorkerState(worker="w", enabled=False, reason="disabled by hand")
    typed = WorkerState(
        worker="w", enabled=False, failures=3, reason="4 runs in a row failed, the last one with queued"
    )
    reasons = [reason_of(state) or "" for state in (failed, by_hand, typed)]
    assert said(checkout, tmp_path, reasons) == ["连续 3 次运行失败，最后一次的错误为 queued", "人工禁用", typed.reason]


async def test_what_programs_of_users_get_has_plain_texts() -> None:
    app = WorkerOrchestrator("memory://")

    @app.worker(cron="0 3 * * *")
    def nightly() -> None: ...

    @app.task
    def work(n: int) -> None: ...

    job = await work.enqueue(1)
    for value in (
        await app.explain_job(job.id),
        await app.put_schedule("often", work.call(n=1), every="5m"),
        await app.get_schedules(),
        await app.pause_schedule("often"),
        app.preview_schedule(cron="0 3 * * *"),
        await app.get_pool_dashboard(),
        await app.get_health(),
        await app.check(),
        await app.nodes(),
        app.get_status(),
        await app.events(),
    ):
        msgspec.json.encode(value)  # it takes no subclass of `str`
    await app.close()


# ── what is kept in stores ───────────────────────────────────────────────────────────────────────────────────────────


def test_a_kept_sentence_is_the_same_when_it_is_read() -> None:
    slots = series("; ", [sentence("{n} slots", n=3), sentence("max_workers is {n}", n=3), "paused"])
    message = sentence("pool {pool}: {n} → {slots}: {why}", pool="{n}", n=2, slots=slots, why="it: {why}")
    parts = json.loads(json.dumps(parts_of(message)))
    assert (parts_of(restored(plain(message), parts)), restored(plain(message), parts)) == (parts, message)
    assert type(plain(message)) is str


@pytest.mark.parametrize("parts", [None, [], ["pool {pool} is paused", {"pool": "mail"}], ["{a}", 5], "text", [[], {}]])
def test_an_event_of_another_version_is_shown_as_it_is(parts: Any) -> None:
    event = Event(at=0.0, name="pool.paused", subject="jobs", message="pool jobs is paused", parts=parts)
    assert (text_of(EventRow(event=event)), parts_of(text_of(EventRow(event=event)))) == ("pool jobs is paused", None)


TERMS: Final = {
    "Schedules": "调度",
    "Disable": "禁用",
    "disabled": "已禁用",
    "Dependencies and conflicts": "依赖与阻塞",
}
"""What the pattern calls these in Chinese."""


def test_the_words_of_the_pattern_are_used_in_chinese(checkout: Path) -> None:
    own = (checkout / "ui/src/languages/zh-CN.ts").read_text()
    found = {key: re.search(rf'^  "?{key}"?: "(.*)",$', own, re.MULTILINE) for key in TERMS}
    assert {key: match and match[1] for key, match in found.items()} == TERMS
    sentences = "".join(catalogue(checkout, "zh-CN").values())
    assert all(word in sentences for word in ("禁用", "依赖", "阻塞", "调度"))
    readme = (checkout / "README.zh-CN.md").read_text()
    assert all(word in readme for word in ("编排", "优雅关闭"))


def test_a_text_that_names_a_button_has_the_words_of_the_button(checkout: Path) -> None:
    own = (checkout / "ui/src/languages/zh-CN.ts").read_text()
    buttons = dict(re.findall(r'^  (Older|Newer): "(.+)",$', own, re.MULTILINE))
    named = re.findall(r'^  ".*; (Older|Newer) continues it\.": "(.+)",$', own, re.MULTILINE)
    assert len(named) == 2
    assert [text for button, text in named if buttons[button] not in text] == []


GIVEN_UP: Final[Mapping[str, set[str]]] = {
    r"requeue\w*": set(),
    r"active": set(),
    r"Runs(?! on)": {"Runs {schedule}"},  # a verb
    r"heard": set(),
    r"Busy": {
        "Busy",  # of an instance
        "Busy slots of {name}",  # of a node
    },
    r"process(es)?": {
        # of the operating system
        "Processes",
        "Processes cannot be started on {node}: {error}",
        "Processes of {pool} cannot be started: {error}",
        "Its processes finish their running jobs and exit; other nodes take over.",
    },
}
"""Words that gave way to another (decision 105), each with the messages in which it stands for something else."""


@pytest.mark.parametrize("word", GIVEN_UP)
def test_a_word_that_was_given_up_is_not_in_the_dashboard(checkout: Path, word: str) -> None:
    own = (checkout / "ui/src/languages/zh-CN.ts").read_text()  # every message of the dashboard
    keys = re.findall(r'^  (?:"((?:[^"\\]|\\.)+)"|(\w+)):', own, re.MULTILINE)
    flags = 0 if word[0].isupper() else re.IGNORECASE
    found = {key for quoted, bare in keys if re.search(rf"\b{word}\b", key := quoted or bare, flags)}
    assert found == GIVEN_UP[word]


@pytest.mark.parametrize("page", ["pages/overview.tsx", "pages/pools.tsx"])
def test_jobs_of_a_pool_run_and_are_not_called_busy(checkout: Path, page: str) -> None:
    assert "usy" not in (checkout / "ui/src" / page).read_text()
