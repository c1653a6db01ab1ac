"""`make sbom`: the bills of materials have the packages that requirements/ pins, and nothing else."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from tests.support.programs import missing

ROOT = Path(__file__).parents[3]
STATE = ROOT / os.environ.get("TIPCFLOW_HOME", ".tipcflow")
REQUIREMENTS = sorted((ROOT / "requirements").glob("*.txt"))
PIN = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==([^\s;\\]+)", re.MULTILINE)
HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")

pytestmark = [pytest.mark.process, pytest.mark.slow]


@pytest.fixture(scope="module")
def bills() -> dict[str, dict[str, Any]]:
    """The bills of materials by the names of their requirements, written by the program that `make sbom` runs."""
    if not (STATE / "envs/audit/.requirements").exists():
        missing("`make sbom` has not installed its program, which needs a package index")
    subprocess.run(["tools/sbom.sh"], cwd=ROOT, check=True, capture_output=True, timeout=240)
    return {path.name.partition(".")[0]: json.loads(path.read_text()) for path in (ROOT / "sbom").glob("*.json")}


@pytest.mark.parametrize("file", REQUIREMENTS, ids=lambda file: file.stem)
def test_bill_of_materials_has_all_pins_with_their_hashes(bills: dict[str, dict[str, Any]], file: Path) -> None:
    bill, text = bills[file.stem], file.read_text()
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    pins = set(PIN.findall(text))
    assert pins
    assert {(part["name"], part["version"]) for part in bill["components"]} == pins
    purls = {unquote(part["purl"]) for part in bill["components"]}
    assert purls == {f"pkg:pypi/{name.lower()}@{version}" for name, version in pins}
    hashes = {
        each["content"]
        for part in bill["components"]
        for reference in part["externalReferences"]
        for each in reference.get("hashes", ())
    }
    assert hashes == set(HASH.findall(text))
