"""`shiftwork deploy`, and what `shiftwork run` says of a module that calls the store when it is imported."""

from pathlib import Path

from tests.cli.terminal import Terminal

APP = """
from shiftwork import WorkerOrchestrator

app = WorkerOrchestrator("sqlite:///shop.db")


@app.task
def report(region: str) -> None: ...
"""
DEPLOYED = """

@app.on_deploy
def schedules() -> None:
    app.blocking.put_schedule("north", report.call(region="north"), cron="0 6 * * *")
"""
BROKEN = """

@app.on_deploy
def breaks() -> None:
    raise ValueError("there is no region")
"""
AT_IMPORT = """
app.blocking.put_schedule("north", report.call(region="north"), cron="0 6 * * *")
"""


def write(name: str, text: str) -> str:
    (Path.cwd() / f"{name}.py").write_text(text)
    return f"{name}:app"


def test_it_runs_what_is_marked_and_names_it(terminal: Terminal) -> None:
    app = write("deployed_shop", APP + DEPLOYED)
    assert terminal.ok("deploy", app, store=None) == "deployed_shop:app is deployed: schedules\n"
    assert terminal.json("deploy", app, store=None) == {"app": app, "deployed": ["schedules"]}
    assert "north" in terminal.ok("schedules", "--app", app, store=None)


def test_it_ends_with_one_and_the_line_that_failed(terminal: Terminal) -> None:
    refusal = terminal.refused("deploy", write("broken_shop", APP + BROKEN), store=None)
    assert "deploying broken_shop:app failed: ValueError: there is no region" in refusal
    assert 'raise ValueError("there is no region")' in refusal


def test_an_app_without_such_a_function_is_deployed_by_doing_nothing(terminal: Terminal) -> None:
    assert terminal.ok("deploy", write("plain_shop", APP), store=None) == ""


def test_a_module_that_calls_the_store_when_it_is_imported_learns_where_that_belongs(terminal: Terminal) -> None:
    app = write("hasty_shop", APP + AT_IMPORT)
    node = terminal.start("run", app, "--no-web")
    node.wait_for("module hasty_shop cannot be imported: LifecycleError: a blocking call would stop")
    node.wait_for("belongs in a function with @app.on_deploy, which `shiftwork deploy MODULE:NAME` runs")
    assert node.end() == 1
