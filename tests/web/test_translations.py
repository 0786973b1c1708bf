"""The dashboard's catalogue of our sentences has what we write, word for word: what it does not have stays English."""

import ast
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
import pytest
from msgspec import Meta

from shiftwork.core.options.configs import check_schedule, timing
from shiftwork.core.schedules.cron import cron_words
from shiftwork.errors import ConfigurationError
from shiftwork.store.redis.server.faults import unreachable
from tests.node import node as run_in_node

COMPLETE: Final = ("core/health/judging", "core/health/pool_problems", "core/scaling/backlog", "core/workers/admission")
"""Where every sentence has a translation: the problems, and why a job waits."""
OF_OTHERS: Final = re.compile(
    r"\{(ticks|nth|month2)\}|^at (the start|minute)|^every (second )?(minute|hour|month)"  # cronsim
    r"|^(Expected|Invalid|Object|JSON) |^the server responded "  # msgspec, and the client
)
"""What others write: much of it is translated in the tests below."""
PUT_TOGETHER: Final = {
    "and 1 other ended badly: retry them or cancel the flow",
    "and {n} others ended badly: retry them or cancel the flow",
    "at least {n} and at most {n2}",
    "those of 1 other worker",
    "those of {n} other workers",
}
"""What the code makes of parts, none of which is half of it."""
HOLE: Final = re.compile(r"\{[\w:.]+\}")
FEW: Final = 15
"""A text with fewer letters is part of many others."""
LETTER: Final = re.compile(r"[A-Za-z]")


def catalogues(checkout: Path) -> dict[str, dict[str, str]]:
    paths = (checkout / "ui/src/languages").glob("*.sentences.json")
    return {path.name.split(".")[0]: json.loads(path.read_text()) for path in paths}


def written(checkout: Path, module: str) -> Iterator[str]:
    """Yield every text of a module that has words, with a hole for each value."""
    tree = ast.parse((checkout / f"src/shiftwork/{module}.py").read_text())
    parts = {part for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    parts -= {node for node in parts if isinstance(node, ast.JoinedStr)}
    docstrings = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if node not in docstrings and (node not in parts or isinstance(node, ast.JoinedStr)):
            text = template(node)
            if " " in text.strip():
                yield text


def template(node: ast.AST) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "{x}" for part in node.values)
    value: Any = node.value if isinstance(node, ast.Constant) else ""
    return value if isinstance(value, str) else ""


def letters(text: str) -> int:
    return len(LETTER.findall(HOLE.sub("", text)))


def is_of(sentence: str, text: str) -> bool:
    """Whether a sentence of a catalogue is one that this text becomes, or the greater part of it."""
    pattern = ".*".join(re.escape(part) for part in HOLE.split(text.removeprefix("{x}").strip("; ")))
    return letters(text) >= 0.5 * letters(sentence) and re.search(pattern, sentence) is not None


@pytest.mark.parametrize("language", ["zh-CN"])
def test_sentences_in_a_catalogue_are_those_that_we_write(checkout: Path, language: str) -> None:
    root = checkout / "src" / "shiftwork"
    modules = [str(path.relative_to(root).with_suffix("")) for path in root.rglob("*.py")]
    texts = [text for module in modules for text in written(checkout, module)]
    keys = [key for key in catalogues(checkout)[language] if " " in key and letters(key) > FEW]
    ours = [key for key in keys if not OF_OTHERS.search(key) and key not in PUT_TOGETHER]
    assert [key for key in ours if not any(is_of(key, text) for text in texts)] == []


@pytest.mark.parametrize("language", ["zh-CN"])
def test_every_problem_and_every_reason_to_wait_is_translated(checkout: Path, language: str) -> None:
    known = list(catalogues(checkout)[language])
    texts = [text for module in COMPLETE for text in written(checkout, module) if letters(text) > FEW]
    assert len(texts) > 60
    assert [text for text in texts if not any(is_of(key, text) for key in known)] == []


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
FAULTS: Final = [
    "调度 有 2 个问题：",
    "  - 无法读取 cron '0 25 * * *'：小时有误",
    "  - 'Shanghai' 不是时区；您是指 'Asia/Shanghai' 吗？",
]
SAY: Final = """
import { readFileSync, writeFileSync } from "node:fs";
const [, , folder, language, file] = process.argv;
const { interpreter } = await import(`file://${folder}/sentences.ts`);
const { default: words } = await import(`file://${folder}/languages/${language}.ts`);
const sentences = JSON.parse(readFileSync(`${folder}/languages/${language}.sentences.json`, "utf8"));
writeFileSync(file, JSON.stringify(JSON.parse(readFileSync(file, "utf8")).map(interpreter(sentences, words))));
"""


def said(checkout: Path, folder: Path, language: str, sentences: list[str]) -> list[str]:
    """Return sentences as the dashboard shows them."""
    file = folder / "sentences.json"
    file.write_text(json.dumps(sentences))
    (folder / "say.mjs").write_text(SAY)
    run_in_node(folder / "say.mjs", checkout / "ui/src", language, file, cwd=folder)
    translated: list[str] = json.loads(file.read_text())
    return translated


NAMED_LIKE_WORDS: Final = {
    "pool paused is paused: running; 3 queued": "工作池 paused 已暂停：running；3 个任务在排队",
    "pool running is paused: queued; skip; 3 queued": "工作池 running 已暂停：queued; skip；3 个任务在排队",
    "worker running is disabled: dead": "worker running 已禁用：dead",
    "worker paused is disabled: disabled by hand": "worker paused 已禁用：人工禁用",
    "worker failed is failing: the last attempt failed 3 s ago with skip": (
        "worker failed 出错中：最近一次尝试在 3 秒前失败，错误为 skip"
    ),
    "1 job waits for worker critical, which no running node has": (
        "1 个任务在等待 worker critical，但没有运行中的节点拥有它"
    ),
    "no live node has the labels of pool idle (high, low); 2 queued": (
        "没有存活的节点带有工作池 idle 的标签\uff08high, low\uff09；2 个任务在排队"
    ),
    "node drained is drained: idle": "节点 drained 已排空：idle",
    "schedule day is paused": "调度 day 已暂停",
    "breaker open is open": "熔断器 open 已断开",
    "blocked by running, which is running on busy/paused#1": "被 running 阻塞，它正在 busy/paused#1 上运行",
    "depends on queued, which is queued to run first": "依赖 queued，它已排队，先运行",
    "wait for sleep": "等待 sleep",
    "waits: pool paused is paused; rate limit of running: 20 in 60 s": (
        "等待：工作池 paused 已暂停；running 的限速：每 60 秒 20 个"
    ),
    "it waits for 2 of 3 jobs: 1 of paused is running, 1 of running is to be retried": (
        "等待：3 个任务中的 2 个：paused 有 1 个执行中，running 有 1 个待重试"
    ),
    "job 17 of running is dead: Failed": "running 的任务 17 成为死信：Failed",
    str(unreachable(ConnectionRefusedError(), "127.0.0.1:6379")): (
        "无法连接 127.0.0.1:6379 上的服务器：那里没有服务在监听。请启动服务器\uff0c或更正 URL 中的主机和端口。"
    ),
    "pool paused: 3 → 4 slots: 2 busy on average, so 4 leave room to spare; min_workers is 4": (
        "工作池 paused：3 → 4 个槽位：平均 2 个忙碌，4 个即有余量；min_workers 为 4"
    ),
}
"""What is said of pools, workers, nodes … whose names, reasons and errors are words of the dashboard."""


TERMS: Final = {
    "Schedules": "调度",
    "Disable": "禁用",
    "disabled": "已禁用",
    "Dependencies and conflicts": "依赖与阻塞",
}
"""What the pattern calls these in Chinese."""


def test_the_words_of_the_pattern_are_used_in_chinese(checkout: Path) -> None:
    catalogue = (checkout / "ui/src/languages/zh-CN.ts").read_text()
    found = {key: re.search(rf'^  "?{key}"?: "(.*)",$', catalogue, re.MULTILINE) for key in TERMS}
    assert {key: match and match[1] for key, match in found.items()} == TERMS
    sentences = "".join(catalogues(checkout)["zh-CN"].values())
    assert all(word in sentences for word in ("禁用", "依赖", "阻塞", "调度"))
    readme = (checkout / "README.zh-CN.md").read_text()
    assert all(word in readme for word in ("编排", "优雅关闭"))


def test_a_word_that_was_given_up_is_not_in_the_dashboard(checkout: Path) -> None:
    """It says "retry", as the command line does (decision 105)."""
    catalogue = (checkout / "ui/src/languages/zh-CN.ts").read_text()  # every message of the dashboard
    assert re.findall(r"\b\w*requeue\w*", catalogue, re.IGNORECASE) == []


def test_names_of_users_are_not_translated(checkout: Path, tmp_path: Path) -> None:
    assert said(checkout, tmp_path, "zh-CN", list(NAMED_LIKE_WORDS)) == list(NAMED_LIKE_WORDS.values())


def test_schedules_and_several_faults_at_once_are_said_in_chinese(checkout: Path, tmp_path: Path) -> None:
    english = [cron_words(cron, "Asia/Shanghai") for cron in CRON]
    with pytest.raises(ConfigurationError) as faults:
        timing("a schedule", {"cron": "0 25 * * *", "timezone": "Shanghai"})
    *schedules, several = said(checkout, tmp_path, "zh-CN", [*english, str(faults.value)])
    assert [one.removesuffix("Asia/Shanghai")[:-1] for one in schedules] == list(CRON.values())
    assert several.splitlines() == FAULTS


def test_rejections_are_said_in_chinese(checkout: Path, tmp_path: Path) -> None:
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
        english.append(f"the body is not valid: {refused.value}")
    with pytest.raises(ConfigurationError) as named:
        check_schedule(" nightly", catch_up="all", overlap="skip")
    for text in said(checkout, tmp_path, "zh-CN", [*english, str(named.value)]):
        assert not re.search(r"[A-Za-z]{3,}", re.sub(r"`[^`]*`|'[^']*'", "", text)), text
