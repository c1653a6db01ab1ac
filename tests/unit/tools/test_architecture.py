"""The tables of docs/architecture.md list the packages that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "architecture.md").read_text()
PRODUCT = ROOT / "src" / "tipcflow"
# Packages beside tipcflow.
BESIDE = {
    "devcluster": "src/devcluster",
    "tipcflow_operators": "operators/tipcflow_operators",
    "tipcflow_pages": "plugins/tipcflow_pages",
}


def packages(folder: Path) -> list[str]:
    return sorted(path.parent.name for path in folder.glob("*/__init__.py"))


def test_every_package_of_tipcflow_has_a_row() -> None:
    table = PAGE.partition("| Package | Question | May access |")[2].partition("\n\n")[0]
    assert sorted(re.findall(r"^\| `(\w+)/` \|", table, re.MULTILINE)) == packages(PRODUCT)


def test_every_package_beside_tipcflow_has_a_row() -> None:
    table = PAGE.partition("| Package | Question |\n")[2].partition("\n\n")[0]
    assert {"devcluster", "tipcflow"} == set(packages(ROOT / "src"))
    rows = {path.rstrip("/") for path in re.findall(r"^\| `([\w/]+)` \|", table, re.MULTILINE)}
    assert rows == set(BESIDE.values())


def test_rows_of_large_packages_name_all_their_subpackages() -> None:
    table = PAGE.partition("| Package | Sub-packages |")[2].partition("\n\n")[0]
    rows = dict(re.findall(r"^\| `(\w+)/?` \| (.*) \|$", table, re.MULTILINE))
    large = {name for name in packages(PRODUCT) if packages(PRODUCT / name)}
    assert set(rows) == large | set(BESIDE)
    listed = {package: sorted(re.findall(r"`(\w+)`", text)) for package, text in rows.items()}
    assert listed == {name: packages(ROOT / BESIDE.get(name, f"src/tipcflow/{name}")) for name in rows}
