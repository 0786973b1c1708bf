"""What a store reports that an older version of shiftwork has written, and that it cannot upgrade yet."""

from shiftwork.errors import SchemaVersionError


def outlived(place: str, nodes: str) -> SchemaVersionError:
    """Return the error while nodes of the older version, with these names, are live."""
    return SchemaVersionError(
        f"{place} was written by an older version of shiftwork, and nodes of it are still running: {nodes}. Stop them; "
        "then the first process of this version upgrades it, and no job is lost. A node that was killed counts until "
        "its lease ends, 15 seconds by default."
    )
