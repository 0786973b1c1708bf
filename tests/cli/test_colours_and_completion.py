"""Colours where they are wanted, the address of the dashboard, and completion in a shell."""

import pytest
from click.testing import CliRunner

from shiftwork.cli import main
from shiftwork.cli.completion import SHELLS
from shiftwork.cli.running.serving import web_at
from shiftwork.serve.service import Web
from tests.cli.terminal import URL, Terminal


def test_a_terminal_gets_colours_unless_no_color_is_set(shop: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    def shown(*, color: bool) -> str:
        return "".join(
            CliRunner().invoke(main, [name, "--store", URL], color=color).stdout for name in ("status", "pools")
        )

    assert "\x1b[1mPOOL" in shown(color=True)
    assert "\x1b[33m" in shown(color=True)
    assert "\x1b" not in shown(color=False)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in shown(color=True)


def test_options_for_the_address_win_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SHIFTWORK_WEB", raising=False)
    assert web_at(None, None, always_token=False) == Web(host="127.0.0.1", port=8421, demanded=False)
    assert web_at(None, 0, always_token=True) == Web(port=0, demanded=True, trust_loopback=False)
    monkeypatch.setenv("SHIFTWORK_WEB", "0.0.0.0:8000")
    assert web_at(None, None, always_token=False) == Web(host="0.0.0.0", port=8000, demanded=True)
    assert web_at("::1", None, always_token=False) == Web(host="::1", port=8000, demanded=True)


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_for_a_shell_completes_commands_and_options(
    terminal: Terminal, shell: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert f"_SHIFTWORK_COMPLETE={shell}_complete" in terminal.ok("completion", shell, store=None)
    monkeypatch.setenv("_SHIFTWORK_COMPLETE", f"{shell}_complete")
    for typed, wanted in (("dea", "dead"), ("run shop --rel", "--reload"), ("jobs --status q", "queued")):
        words = f"shiftwork {typed}"
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", typed.split()[-1] if shell == "fish" else str(words.count(" ")))
        assert wanted in terminal.run(store=None).stdout
