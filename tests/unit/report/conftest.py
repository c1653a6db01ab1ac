"""Makes the builder of facts importable: tests are collected without a package."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def build() -> ModuleType:
    path = Path(__file__).parents[1] / "check" / "facts_builder.py"
    spec = importlib.util.spec_from_file_location("facts_builder", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
