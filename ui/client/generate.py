"""Writes `src/api.ts`: the types and operations of the HTTP API, from its own OpenAPI document.

The file is checked in, because the dashboard is built where shiftwork is not installed. A test compares it with what
would be written now; `make client` writes it.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import wrap
from typing import Any, Final

import shiftwork.web.api  # noqa: F401 - it imports every route
from shiftwork.web.openapi import document

WRITTEN: Final = Path(__file__).parent / "src" / "api.ts"
WIDTH: Final = 116
BY_HAND: Final = {"enqueue", "live", "openapi"}
"""Operations that `client.ts` has in a better form, or leaves out."""
OTHER_NAMES: Final = {"events": "pastEvents"}
"""`Client.events` are those to come."""
HEAD: Final = """\
/** The types and operations of the HTTP API. Written by generate.py from the OpenAPI document: do not edit. */

/** What every operation takes, besides its own arguments. */
export interface CallOptions {
  /** Ends the request. */
  signal?: AbortSignal;
  /** How long the response may take, instead of the client's own limit. */
  timeoutMs?: number;
  /** Further headers, such as `Idempotency-Key` and `traceparent`. */
  headers?: Record<string, string>;
}

/** What a request sends. */
export interface Sent {
  query?: object;
  body?: object;
}

const segment = (name: string) => encodeURIComponent(name);
"""
CLASS: Final = """
/** The operations of the API, each a request. */
export abstract class Operations {
  protected abstract send<T>(method: "GET" | "POST", path: string, sent: Sent, options: CallOptions): Promise<T>;
"""

Schema = Mapping[str, Any]


def written(api: Schema) -> str:
    """Return the file for an OpenAPI document."""
    types = [_declared(name, schema) for name, schema in sorted(api["components"]["schemas"].items())]
    operations = [
        (method.upper(), path, operation)
        for path, methods in api["paths"].items()
        for method, operation in methods.items()
        if operation["operationId"] not in BY_HAND
    ]
    operations.sort(key=lambda one: _method_name(one[2]))
    queries = [_query(operation) for _, _, operation in operations if _asked(operation)]
    return "\n".join([HEAD, *types, *queries]) + CLASS + "".join(_method(*one, api) for one in operations) + "}\n"


# ── types ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def type_of(schema: Schema) -> str:
    """Return the type of the values that fit a schema."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema["enum"])
    match schema.get("type"):
        case "array":
            return _array(schema)
        case "object":
            return _object(schema)
        case "integer" | "number":
            return "number"
        case "string" | "boolean" | "null" as kind:
            return str(kind)
    return " | ".join(type_of(one) for one in schema["anyOf"]) if "anyOf" in schema else "unknown"


def _array(schema: Schema) -> str:
    items = type_of(schema["items"])
    return f"({items})[]" if " " in items else f"{items}[]"


def _object(schema: Schema) -> str:
    if schema.get("additionalProperties") is False:
        return "Record<string, never>"
    values = type_of(schema.get("additionalProperties", {}))
    keys = schema.get("propertyNames")
    return f"Partial<Record<{type_of(keys)}, {values}>>" if keys else f"Record<string, {values}>"


def _declared(name: str, schema: Schema) -> str:
    comment = _comment(schema.get("description"), "")
    if "properties" not in schema:
        return f"{comment}export type {name} = {type_of(schema)};\n"
    fields = [_field(key, one, required=key in schema.get("required", ())) for key, one in schema["properties"].items()]
    return f"{comment}export interface {name} {{\n{''.join(fields)}}}\n"


def _field(name: str, schema: Schema, *, required: bool) -> str:
    return f"{_comment(schema.get('description'), '  ')}  {name}{'' if required else '?'}: {type_of(schema)};\n"


def _comment(text: str | None, indent: str) -> str:
    if not text:
        return ""
    lines = wrap(" ".join(text.split()).replace("*/", "* /"), WIDTH - len(indent) - 7)
    if len(lines) == 1:
        return f"{indent}/** {lines[0]} */\n"
    return "".join([f"{indent}/**\n", *(f"{indent} * {line}\n" for line in lines), f"{indent} */\n"])


# ── operations ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _method(method: str, path: str, operation: Schema, api: Schema) -> str:
    arguments = [f"{name}: string" for name in re.findall(r"{(\w+)}", path)]
    sent = "{}"
    if _asked(operation):
        arguments.append(f"query: {_query_name(operation)} = {{}}")
        sent = "{ query }"
    elif method == "POST":
        body = operation["requestBody"]["content"]["application/json"]["schema"]
        kind = type_of(body)
        sent = "{ body: {} }" if kind == "Record<string, never>" else "{ body }"
        if sent == "{ body }":
            needed = any(one.get("required") for one in _objects(body, api))
            arguments.append(f"body: {kind}" + ("" if needed else " = {}"))
    answer = type_of(operation["responses"]["200"]["content"]["application/json"]["schema"])
    place = re.sub(r"{(\w+)}", r"${segment(\1)}", path.removeprefix("/"))
    quoted = f"`{place}`" if "$" in place else f'"{place}"'
    signature = ", ".join([*arguments, "options: CallOptions = {}"])
    return (
        f"\n{_comment(operation['summary'], '  ')}"
        f"  {_method_name(operation)}({signature}): Promise<{answer}> {{\n"
        f'    return this.send("{method}", {quoted}, {sent}, options);\n'
        f"  }}\n"
    )


def _objects(schema: Schema, api: Schema) -> Iterator[Schema]:
    for one in schema.get("anyOf", [schema]):
        yield api["components"]["schemas"][type_of(one)]


def _asked(operation: Schema) -> list[Schema]:
    return [parameter for parameter in operation["parameters"] if parameter["in"] == "query"]


def _query(operation: Schema) -> str:
    fields = [f"  {one['name']}?: {type_of(one['schema'])} | null;\n" for one in _asked(operation)]
    comment = f"/** What `{_method_name(operation)}` asks for; null is the same as nothing. */\n"
    return f"{comment}export interface {_query_name(operation)} {{\n{''.join(fields)}}}\n"


def _query_name(operation: Schema) -> str:
    name = _method_name(operation)
    return f"{name[0].upper()}{name[1:]}Query"


def _method_name(operation: Schema) -> str:
    given = str(operation["operationId"])
    name = OTHER_NAMES.get(given, given)
    return re.sub(r"_(\w)", lambda found: found[1].upper(), name)


if __name__ == "__main__":
    WRITTEN.write_text(written(document()))
