"""`shiftwork token`: tokens for the HTTP API."""

from typing import cast

import click
from msgspec.structs import asdict

from shiftwork.cli.connect import Source, with_source
from shiftwork.cli.terminal.formatting import ago
from shiftwork.cli.terminal.output import answer, aside, json_option, say, show_json, show_table
from shiftwork.cli.terminal.typed_values import seconds
from shiftwork.control.control import Control
from shiftwork.core.model.doc_types import Role, Token
from shiftwork.views.shapes.system import token_shape


@click.group()
def token() -> None:
    """Tokens for the HTTP API and the dashboard: create, list, revoke."""


@token.command()
@click.argument("name")
@click.option("--role", type=click.Choice(("read", "operate")), required=True, help="operate may also change things.")
@click.option("--valid", type=seconds, metavar="TIME", help="Valid for this long: 12h, 90d.  [default: until revoked]")
@with_source
@json_option
def create(name: str, role: str, valid: float | None, source: Source, *, as_json: bool) -> None:
    """Make a token and print it. It is shown only once: the store keeps a hash."""

    async def make(control: Control) -> tuple[Token, str]:
        return await control.tokens.create(name, cast("Role", role), valid_seconds=valid)

    made, secret = source.ask(make, create=True)
    if as_json:
        show_json(asdict(token_shape(made)) | {"token": secret})
    else:
        say(secret)
        aside(f"token {name} may {role}; it is not shown again. Use it as Authorization: Bearer {secret[:6]}…")


@token.command(name="list")
@with_source
@json_option
def list_tokens(source: Source, *, as_json: bool) -> None:
    """List every token that was ever made, without its secret."""

    async def ask(control: Control) -> tuple[list[Token], float]:
        return await control.tokens.all(), control.now()

    tokens, now = source.ask(ask)
    if as_json:
        show_json({"tokens": [token_shape(one) for one in tokens]})
    elif tokens:
        rows = [(one.name, one.role, one.id, ago(one.created_at, now), _state(one, now)) for one in tokens]
        show_table(("TOKEN", "ROLE", "ID", "CREATED", "STATE"), rows)
    else:
        aside("no tokens; shiftwork token create NAME --role read|operate makes one")


@token.command()
@click.argument("name")
@with_source
@json_option
def revoke(name: str, source: Source, *, as_json: bool) -> None:
    """Revoke a token by its name or its id; it takes effect within seconds."""
    revoked = source.ask(lambda control: control.tokens.revoke(name))
    answer(token_shape(revoked), f"token {revoked.name} revoked", as_json=as_json)


def _state(one: Token, now: float) -> str:
    if one.revoked_at is not None:
        return f"revoked {ago(one.revoked_at, now)}"
    if one.expires_at is None:
        return "valid until revoked"
    return f"valid, expires {ago(one.expires_at, now)}" if one.holds(now) else f"expired {ago(one.expires_at, now)}"
