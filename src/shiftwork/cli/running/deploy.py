"""`shiftwork deploy`: what an app does once per deployment."""

import click

from shiftwork.cli.terminal.output import aside, json_option, say, show_json
from shiftwork.control import calling
from shiftwork.errors import LifecycleError, ShiftworkError
from shiftwork.serve.loading import in_words, load_app


@click.command()
@click.argument("app_name", metavar="APP", envvar="SHIFTWORK_APP")
@json_option
def deploy(app_name: str, *, as_json: bool) -> None:
    """Run the functions of an app that are marked with @app.on_deploy, for example those that put its schedules.

    Call it once per deployment, before the nodes start. Of several that are called at the same time, one runs after
    the other. The exit code is 1 if a function fails.
    """
    app = load_app(app_name)

    async def run() -> list[str]:
        try:
            return await app.deploy()
        except ShiftworkError:
            raise
        except Exception as error:
            raise LifecycleError(in_words(f"deploying {app_name} failed", error, without_us=True)) from error
        finally:
            await app.close()

    done = calling.run(run())
    if as_json:
        show_json({"app": app_name, "deployed": done})
    elif done:
        say(f"{app_name} is deployed: {', '.join(done)}")
    else:
        aside(f"{app_name} has no function with @app.on_deploy: there is nothing to do")
