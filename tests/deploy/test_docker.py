"""deploy/docker, as far as it can be checked without Docker: every command, file, name and number in it is right."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from shiftwork.cli.entry import main
from shiftwork.cli.terminal.typed_values import seconds
from shiftwork.runtime.node import node, stopping
from shiftwork.runtime.processes import hook_process
from shiftwork.serve.loading import load_app
from shiftwork.serve.process import EXIT_SECONDS

LEAVING = stopping.LAST_SECONDS + node.PROCESS_LEAVE_SECONDS + hook_process.DRAIN_SECONDS + EXIT_SECONDS
"""What a node may need after the grace period."""


@pytest.fixture
def folder(checkout: Path) -> Path:
    return checkout / "deploy" / "docker"


@pytest.fixture
def image(folder: Path) -> list[tuple[str, str]]:
    """The instructions of the Dockerfile, and their arguments."""
    lines = [line for line in (folder / "Dockerfile").read_text().splitlines() if line and not line.startswith("#")]
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in lines)]


@pytest.fixture
def services(folder: Path) -> Any:
    return yaml.safe_load((folder / "compose.yaml").read_text())["services"]


def settings_of(image: list[tuple[str, str]]) -> dict[str, str]:
    """The environment that the image sets."""
    pairs = [word.split("=", 1) for name, rest in image if name == "ENV" for word in rest.split()]
    return dict(pairs)


def node_command(image: list[tuple[str, str]]) -> list[str]:
    (command,) = [json.loads(rest) for name, rest in image if name == "CMD"]
    return list(command)


def test_the_commands_exist(image: list[tuple[str, str]], services: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in settings_of(image).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("SHIFTWORK_STORE", services["web"]["environment"]["SHIFTWORK_STORE"])
    _, *probe = services["node"]["healthcheck"]["test"]
    for program, name, *arguments in (node_command(image), services["web"]["command"], probe):
        assert program == "shiftwork"
        command = main.get_command(click.Context(main), name)
        assert command is not None
        command.make_context(name, arguments)


def test_the_image_has_the_app_and_what_it_needs(
    image: list[tuple[str, str]], folder: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied = [rest.split()[0] for name, rest in image if name == "COPY"]
    kept = [line[1:] for line in (folder / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    assert sorted(copied) == sorted(kept) == sorted(name for name in copied if (folder / name).is_file())
    extras = re.findall(r"^shiftwork\[(.+)\]$", (folder / "requirements.txt").read_text(), re.MULTILINE)[0].split(",")
    assert (
        set(extras)
        <= tomllib.loads((checkout / "pyproject.toml").read_text())["project"]["optional-dependencies"].keys()
    )
    base = next(rest for name, rest in image if name == "FROM")
    assert re.fullmatch(r"python:3\.1[123]-slim", base)
    monkeypatch.setenv("SHIFTWORK_STORE", "sqlite:///unused.db")
    module, name = settings_of(image)["SHIFTWORK_APP"].split(":")
    app = load_app(f"{folder / module}.py:{name}")  # as a program: other tests have modules of the same name
    assert [worker.name for worker in app.served.definition().workers] == ["greet"]


def test_a_node_is_not_killed_while_it_stops(image: list[tuple[str, str]], services: Any) -> None:
    command = node_command(image)
    patience = seconds(command[command.index("--stop-timeout") + 1])
    assert seconds(services["node"]["stop_grace_period"]) >= patience + LEAVING
    assert services["node"]["init"] is True


def test_containers_reach_each_other_and_write_only_where_they_may(image: list[tuple[str, str]], services: Any) -> None:
    for name in ("node", "web"):
        service = services[name]
        assert re.fullmatch(r"postgresql://.+@(\w+)/shop", service["environment"]["SHIFTWORK_STORE"])
        assert service["depends_on"].keys() <= services.keys()
        assert service["read_only"] is True
        assert service["tmpfs"] == [str(Path(settings_of(image)["SHIFTWORK_PROBE"]).parent)]
    assert "@postgres/" in services["node"]["environment"]["SHIFTWORK_STORE"]


def test_the_dashboard_needs_a_token_and_is_watched(services: Any) -> None:
    web = services["web"]
    assert "--always-token" in web["command"]
    port = web["command"][web["command"].index("--port") + 1]
    assert web["ports"] == [f"127.0.0.1:{port}:{port}"]
    assert f"127.0.0.1:{port}/livez" in web["healthcheck"]["test"][-1]
    compile(web["healthcheck"]["test"][-1], "healthcheck", "exec")
