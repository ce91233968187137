"""The manifests of examples/serving: their arguments are those of the tool, and their parts fit together."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml
from checkout import ROOT

from glow_mlir.tools.glow_serve import grpc_port_of, named_model, parse_arguments

FOLDER = ROOT / "examples" / "serving"


def documents(name: str) -> list[dict[str, Any]]:
    """What a file of manifests has."""
    return list(yaml.safe_load_all((FOLDER / name).read_text(encoding="utf-8")))


def test_the_deployment() -> None:
    deployment, service = documents("deployment.yaml")
    pod = deployment["spec"]["template"]
    assert deployment["spec"]["selector"]["matchLabels"] == pod["metadata"]["labels"] == service["spec"]["selector"]
    (container,) = pod["spec"]["containers"]
    args = parse_arguments(container["args"])
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"http": args.port, "grpc": grpc_port_of(args, has_models=True)}
    assert args.grace < pod["spec"]["terminationGracePeriodSeconds"]
    assert {port["targetPort"] for port in service["spec"]["ports"]} == ports.keys()
    mounted = {mount["name"] for mount in container["volumeMounts"]}
    assert mounted == {volume["name"] for volume in pod["spec"]["volumes"]}
    for probe in ("readinessProbe", "livenessProbe"):
        assert container[probe]["httpGet"]["path"].startswith("/v2/health/")


def test_the_runtime_of_kserve() -> None:
    (runtime,) = documents("serving-runtime.yaml")
    (container,) = runtime["spec"]["containers"]
    assert container["name"] == "kserve-container"
    args = parse_arguments([text.replace("{{.Name}}", "bert-base") for text in container["args"]])
    assert named_model(args.models[0])[:1] == ("bert-base",)
    assert runtime["spec"]["annotations"]["prometheus.kserve.io/port"] == str(args.port)
    assert container["ports"][0]["containerPort"] == args.port


@pytest.mark.parametrize("instruction", ["ENTRYPOINT", "CMD"])
def test_the_image(instruction: str) -> None:
    lines = dict(re.findall(r"^(ENTRYPOINT|CMD|EXPOSE) (.+)$", (FOLDER / "Dockerfile").read_text(), re.MULTILINE))
    found = json.loads(lines[instruction])
    if instruction == "ENTRYPOINT":
        assert found == ["glow-serve"]
    else:
        args = parse_arguments(found)
        assert lines["EXPOSE"].split() == [str(args.port), str(grpc_port_of(args, has_models=True))]
