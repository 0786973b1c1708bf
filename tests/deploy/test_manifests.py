"""What lies in deploy/ is right by its schemas, and its numbers agree with the code and with each other."""

import configparser
import copy
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click
import jsonschema
import kubernetes_validate
import pytest
import yaml
from msgspec.structs import fields

from shiftwork.cli.entry import main
from shiftwork.cli.running.run import run
from shiftwork.cli.terminal.typed_values import seconds
from shiftwork.runtime.node import node, stopping
from shiftwork.runtime.node.node_settings import NodeSettings
from shiftwork.runtime.processes import hook_process
from shiftwork.serve import notify
from shiftwork.serve.process import EXIT_SECONDS
from shiftwork.serve.vitals import VITALS_FRESH_SECONDS
from shiftwork.web.api import pools
from shiftwork.web.openapi import API
from shiftwork.web.routing import find_route

VERSIONS = ("1.29", "1.37")
"""The oldest and the newest Kubernetes that the manifests are held to."""
FILES = ("config.yaml", "deployment.yaml", "disruption.yaml", "web.yaml", "scaling.yaml")
LEAVING = stopping.LAST_SECONDS + node.PROCESS_LEAVE_SECONDS + hook_process.DRAIN_SECONDS + EXIT_SECONDS
"""What a node may need after the grace period."""


def documents(checkout: Path, file: str) -> list[Any]:
    return list(yaml.safe_load_all((checkout / "deploy" / "kubernetes" / file).read_text()))


@pytest.fixture
def manifests(checkout: Path) -> dict[tuple[str, str], Any]:
    """Every manifest, by kind and name."""
    found = [document for file in FILES for document in documents(checkout, file)]
    return {(document["kind"], document["metadata"]["name"]): document for document in found}


@pytest.fixture
def pod(manifests: dict[tuple[str, str], Any]) -> Any:
    return manifests["Deployment", "shiftwork"]["spec"]["template"]["spec"]


@pytest.fixture
def container(pod: Any) -> Any:
    return pod["containers"][0]


@pytest.fixture
def web(manifests: dict[tuple[str, str], Any]) -> Any:
    """The container of the web."""
    return manifests["Deployment", "shiftwork-web"]["spec"]["template"]["spec"]["containers"][0]


@pytest.fixture
def unit(checkout: Path) -> configparser.SectionProxy:
    """The [Service] of the unit."""
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(checkout / "deploy" / "systemd" / "shiftwork.service")
    return parser["Service"]


@pytest.fixture
def keda() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(json.loads((Path(__file__).parent / "keda.schema.json").read_text()))


def default(option: str) -> Any:
    """What `shiftwork run` does by default."""
    return next(parameter.default for parameter in run.params if parameter.name == option)


def grace(command: list[str]) -> float:
    """The --stop-timeout of a command."""
    return seconds(command[command.index("--stop-timeout") + 1])


# ── schemas ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("version", VERSIONS)
def test_kubernetes_accepts_the_manifests(version: str, manifests: dict[tuple[str, str], Any]) -> None:
    ours = [manifest for manifest in manifests.values() if "keda.sh" not in manifest["apiVersion"]]
    assert len(ours) == 7
    for manifest in ours:
        kubernetes_validate.validate(manifest, version, strict=True)


def test_kubernetes_refuses_a_typing_error(manifests: dict[tuple[str, str], Any]) -> None:
    wrong = copy.deepcopy(manifests["Deployment", "shiftwork"])
    spec = wrong["spec"]["template"]["spec"]
    spec["terminationGracePeriodSecond"] = spec.pop("terminationGracePeriodSeconds")
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, VERSIONS[-1], strict=True)


def test_keda_accepts_its_kinds(manifests: dict[tuple[str, str], Any], keda: jsonschema.Draft202012Validator) -> None:
    theirs = [manifest for manifest in manifests.values() if "keda.sh" in manifest["apiVersion"]]
    assert len(theirs) == 2
    for manifest in theirs:
        keda.validate(manifest)


@pytest.mark.parametrize(
    ("name", "value"), [("minReplicas", 1), ("maxReplicaCount", "10"), ("triggers", []), ("scaleTargetRef", {})]
)
def test_keda_refuses_a_mistake(
    name: str, value: Any, manifests: dict[tuple[str, str], Any], keda: jsonschema.Draft202012Validator
) -> None:
    wrong = copy.deepcopy(manifests["ScaledObject", "shiftwork"])
    wrong["spec"][name] = value
    with pytest.raises(jsonschema.ValidationError):
        keda.validate(wrong)


@pytest.mark.needs("systemd-analyze")
def test_systemd_accepts_the_unit(checkout: Path, tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    assert analyze, "there is no systemd-analyze"
    text = (checkout / "deploy" / "systemd" / "shiftwork.service").read_text()
    unit = tmp_path / "shiftwork.service"
    unit.write_text(text.replace("/opt/shop/.venv/bin/shiftwork", "/bin/true"))
    said = subprocess.run([analyze, "verify", str(unit)], capture_output=True, text=True, check=False)
    assert [line for line in said.stderr.splitlines() if "shiftwork.service" in line] == []
    assert said.returncode == 0, said.stderr


# ── references ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_everything_that_is_referred_to_is_there(
    manifests: dict[tuple[str, str], Any], pod: Any, container: Any
) -> None:
    labels = {("app.kubernetes.io/name", "shiftwork")}
    deployment = manifests["Deployment", "shiftwork"]["spec"]
    assert deployment["template"]["metadata"]["labels"].items() >= labels
    for selector in (deployment["selector"], manifests["PodDisruptionBudget", "shiftwork"]["spec"]["selector"]):
        assert selector["matchLabels"].items() == labels
    for source in container["envFrom"]:
        kind, name = ("ConfigMap", "configMapRef") if "configMapRef" in source else ("Secret", "secretRef")
        assert (kind, source[name]["name"]) in manifests
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
    scaled = manifests["ScaledObject", "shiftwork"]["spec"]
    assert ("Deployment", scaled["scaleTargetRef"]["name"]) in manifests
    assert ("TriggerAuthentication", scaled["triggers"][0]["authenticationRef"]["name"]) in manifests


def test_keda_gets_from_the_web_how_many_nodes_are_wanted(manifests: dict[tuple[str, str], Any]) -> None:
    trigger = manifests["ScaledObject", "shiftwork"]["spec"]["triggers"][0]
    url = urlsplit(trigger["metadata"]["url"])
    service = manifests["Service", url.hostname]["spec"]
    assert url.port in {port["port"] for port in service["ports"]}
    route, found = find_route("GET", url.path.removeprefix(f"{API}/").split("/"))
    assert (route.handler, found) == (pools.scale, {"pool": "images"})
    assert trigger["metadata"]["valueLocation"] in {field.name for field in fields(route.answer)}
    [told] = manifests["TriggerAuthentication", trigger["authenticationRef"]["name"]]["spec"]["secretTargetRef"]
    assert told["key"] in manifests["Secret", told["name"]]["stringData"]


def test_the_service_leads_to_the_web_and_not_to_nodes(manifests: dict[tuple[str, str], Any], web: Any) -> None:
    service = manifests["Service", "shiftwork-web"]["spec"]
    pods = {
        name: manifests["Deployment", name]["spec"]["template"]["metadata"]["labels"].items()
        for name in ("shiftwork", "shiftwork-web")
    }
    assert pods["shiftwork-web"] >= service["selector"].items()
    assert not pods["shiftwork"] >= service["selector"].items()
    assert not pods["shiftwork-web"] >= manifests["Deployment", "shiftwork"]["spec"]["selector"]["matchLabels"].items()
    [port] = web["ports"]
    assert web["command"][web["command"].index("--port") + 1] == str(port["containerPort"])
    assert [one["targetPort"] for one in service["ports"]] == [port["name"]]
    for kind, path in (("liveness", "/livez"), ("readiness", "/readyz")):
        assert web[f"{kind}Probe"]["httpGet"] == {"path": path, "port": port["name"]}
    assert "--always-token" in web["command"]
    assert ("Secret", web["envFrom"][0]["secretRef"]["name"]) in manifests


def test_what_is_applied_does_not_need_what_a_cluster_may_lack(checkout: Path) -> None:
    [applied] = documents(checkout, "kustomization.yaml")
    assert applied["resources"] == [file for file in FILES if file != "scaling.yaml"]


def test_the_probe_file_lies_where_the_node_may_write(manifests: dict[tuple[str, str], Any], container: Any) -> None:
    folder = Path(manifests["ConfigMap", "shiftwork"]["data"]["SHIFTWORK_PROBE"]).parent
    assert str(folder) in {mount["mountPath"] for mount in container["volumeMounts"]}
    assert "/tmp" in {mount["mountPath"] for mount in container["volumeMounts"]}  # stacks are written there


def test_the_commands_exist(container: Any, web: Any, unit: configparser.SectionProxy) -> None:
    probes = [container[f"{kind}Probe"]["exec"]["command"] for kind in ("startup", "liveness", "readiness")]
    environment = {"SHIFTWORK_APP": "shop:app", "SHIFTWORK_PROBE": "/run/shiftwork/probe"}
    for program, name, *arguments in [container["command"], web["command"], *probes, unit["ExecStart"].split()]:
        assert Path(program).name == "shiftwork"
        command = main.get_command(click.Context(main), name)
        assert command is not None
        with pytest.MonkeyPatch.context() as patch:
            for key, value in environment.items():
                patch.setenv(key, value)
            command.make_context(name, arguments)


# ── numbers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_node_is_not_killed_while_it_stops(pod: Any, container: Any, unit: configparser.SectionProxy) -> None:
    assert pod["terminationGracePeriodSeconds"] >= grace(container["command"]) + LEAVING
    assert float(unit["TimeoutStopSec"]) >= grace(unit["ExecStart"].split()) + LEAVING


def test_the_grace_period_is_the_default(container: Any, unit: configparser.SectionProxy) -> None:
    assert grace(container["command"]) == grace(unit["ExecStart"].split()) == float(default("stop_timeout"))


def test_no_watch_is_more_impatient_than_the_node(container: Any, unit: configparser.SectionProxy) -> None:
    lease = NodeSettings().lease_seconds
    assert float(unit["WatchdogSec"]) > 2 * lease
    assert VITALS_FRESH_SECONDS > 3 * notify.NOTIFY_SECONDS
    command = container["livenessProbe"]["exec"]["command"]
    assert float(command[command.index("--within") + 1]) >= VITALS_FRESH_SECONDS
    for kind in ("startup", "liveness", "readiness"):
        assert container[f"{kind}Probe"]["timeoutSeconds"] >= 5  # a Python has to start, on a machine that is busy


def test_signals_are_for_the_node_alone(container: Any, unit: configparser.SectionProxy) -> None:
    assert (unit["Type"], unit["NotifyAccess"], unit["KillMode"]) == ("notify", "main", "mixed")
    assert container["command"][0] == "shiftwork"


def test_a_new_node_comes_before_an_old_one_goes(manifests: dict[tuple[str, str], Any]) -> None:
    rolling = manifests["Deployment", "shiftwork"]["spec"]["strategy"]["rollingUpdate"]
    assert rolling == {"maxSurge": 1, "maxUnavailable": 0}
    assert manifests["ScaledObject", "shiftwork"]["spec"]["minReplicaCount"] >= 1
