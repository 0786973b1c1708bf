"""The SBOM of a wheel, in CycloneDX: the JavaScript that is inside it, and the Python packages that it needs.

The wheel's metadata names ranges of versions. The versions here are those of this environment, as tested.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from email.parser import HeaderParser
from importlib.metadata import distribution
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote
from uuid import NAMESPACE_URL, uuid5
from zipfile import ZipFile

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

BUNDLED: Final = "shiftwork/web/dist/licenses.txt"
PACKAGE: Final = re.compile(r"^(\S+) (\d+\.\d+\.\d+)$", re.MULTILINE)
"""The first line of each package in that file."""


def sbom(wheel: Path) -> dict[str, Any]:
    """Return the document. The same wheel in the same environment has the same one."""
    with ZipFile(wheel) as archive:
        (name,) = (one for one in archive.namelist() if one.endswith(".dist-info/METADATA"))
        metadata = HeaderParser().parsestr(archive.read(name).decode())
        bundled = PACKAGE.findall(archive.read(BUNDLED).decode())
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    itself = component("pypi", "shiftwork", metadata["Version"]) | {
        "type": "application",
        "licenses": [{"license": {"id": metadata["License-Expression"]}}],
        "hashes": [{"alg": "SHA-256", "content": digest}],
    }
    inside = [component("npm", name, version) | {"scope": "required"} for name, version in bundled]
    needed = Needed([Requirement(line) for line in metadata.get_all("Requires-Dist", [])])
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": uuid5(NAMESPACE_URL, digest).urn,
        "version": 1,
        "metadata": {"component": itself},
        "components": [*inside, *needed.components],
        "dependencies": [
            {"ref": itself["bom-ref"], "dependsOn": sorted([*(one["bom-ref"] for one in inside), *needed.direct])},
            *needed.dependencies,
        ],
    }


def component(kind: str, name: str, version: str) -> dict[str, Any]:
    """Return a package of an index."""
    purl = f"pkg:{kind}/{quote(name)}@{version}"
    return {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}


class Needed:
    """The Python packages that a wheel needs on this system, with every extra, and what they need in turn."""

    def __init__(self, requirements: list[Requirement]) -> None:
        self.extras = {
            "",
            *(extra for one in requirements for extra in re.findall(r'extra == "(\w+)"', str(one.marker))),
        }
        always = {canonicalize_name(one.name) for one in wanted(requirements, {""})}
        self.direct = {self._ref(one.name) for one in wanted(requirements, self.extras) if one.name != "shiftwork"}
        self.components: list[dict[str, Any]] = []
        self.dependencies: list[dict[str, Any]] = []
        self._seen: set[str] = set()
        for one in wanted(requirements, self.extras):
            if one.name != "shiftwork":  # the extra `all` names the others
                self._add(one, "required" if canonicalize_name(one.name) in always else "optional")

    def _add(self, requirement: Requirement, scope: str) -> None:
        name = canonicalize_name(requirement.name)
        if name in self._seen:
            return
        self._seen.add(name)
        package = distribution(name)
        below = list(wanted([Requirement(line) for line in package.requires or []], {"", *requirement.extras}))
        self.components.append(component("pypi", name, package.version) | {"scope": scope})
        self.dependencies.append({"ref": self._ref(name), "dependsOn": sorted({self._ref(one.name) for one in below})})
        for one in below:
            self._add(one, scope)

    @staticmethod
    def _ref(name: str) -> str:
        canonical = canonicalize_name(name)
        return str(component("pypi", canonical, distribution(canonical).version)["bom-ref"])


def wanted(requirements: list[Requirement], extras: set[str]) -> Iterator[Requirement]:
    """Yield those of the requirements that count on this system with these extras."""
    for one in requirements:
        if one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in extras):
            yield one


def write_sbom(wheel: Path) -> Path:
    """Write the document beside its wheel."""
    name, version, *_ = wheel.name.split("-")
    path = wheel.with_name(f"{name}-{version}.cdx.json")
    path.write_text(json.dumps(sbom(wheel), indent=2) + "\n")
    return path
