"""The picture of the packages shows the layers of the import graph."""

import importlib.util
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[3]
EDGES = {"cli": {"store", "domain"}, "store": {"domain"}, "domain": set()}


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("package_graph", ROOT / "tools" / "package_graph.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_an_import_that_a_longer_path_implies_is_left_out(tool: ModuleType) -> None:
    assert tool.reduced(EDGES) == {"cli": {"store"}, "store": {"domain"}, "domain": set()}


def test_package_is_above_all_imported_packages(tool: ModuleType) -> None:
    assert tool.layers_of(sorted(EDGES), EDGES) == {"cli": 2, "store": 1, "domain": 0}


def test_the_diagram_is_xml_with_every_package(tool: ModuleType) -> None:
    svg = "{http://www.w3.org/2000/svg}"
    root = ElementTree.fromstring(tool.svg(EDGES))
    assert {text.text for text in root.iter(f"{svg}text")} == set(EDGES)
    arrows = [path for group in root.findall(f"{svg}g") for path in group.findall(f"{svg}path")]
    assert len(arrows) == 2


def test_the_import_graph_holds_the_packages(tool: ModuleType) -> None:
    edges = tool.import_graph()
    assert {"domain", "plan", "store", "check"} <= set(edges)
    assert edges["domain"] == set()
    assert "execute" in edges["tipcflow_operators"]
