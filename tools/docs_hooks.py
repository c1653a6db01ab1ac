"""Hooks of mkdocs: pages that are made from other files, and navigation entries that follow the files.

- contributing.md, changelog.md and security.md are the files in the repository's root;
- api/<package>.md documents each package from its docstrings: the names in `__all__`, or its public
  modules (those of a large package on one page per subpackage);
- `api/` and `adr/*.md` in the navigation expand to all pages of that folder.
"""

import ast
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

sys.path.append(str(Path(__file__).parent))
from public import declared_modules

ROOT = Path(__file__).resolve().parents[1]
ROOT_PAGES = {"contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md", "security.md": "SECURITY.md"}


# Packages documented as a whole: `__all__` if they have it, otherwise every public module of the package and the
# packages in it (the paragraph "Public:" of their docstrings, ADR 19). Source folder -> page.
ROOTS = {
    "operators/tipcflow_operators": "tipcflow_operators",
    "plugins/tipcflow_pages": "tipcflow_pages",
    "src/devcluster": "devcluster",
}
_SECTION = "    options:\n      heading_level: 3\n      filters: ['!^_']\n"
# Public modules of a package beyond which each of its subpackages has a page.
MOST_ON_A_PAGE = 12


def public_names(init: Path) -> list[str]:
    """What `__all__` of a package lists; empty without one."""
    for node in ast.parse(init.read_text()).body:
        if isinstance(node, ast.Assign) and any(getattr(t, "id", "") == "__all__" for t in node.targets):
            return [str(name) for name in ast.literal_eval(node.value)]
    return []


def public_modules(folder: Path, package: str) -> list[str]:
    """The modules that the packages below a folder declare public, in order of their names."""
    modules = []
    for init in sorted(folder.rglob("__init__.py")):
        name = ".".join([package, *init.parent.relative_to(folder).parts])
        for module in declared_modules(ast.parse(init.read_text())) or []:
            modules.append(name if module == "__all__" else f"{name}.{module}")
    return modules


def api_pages() -> dict[str, str]:
    """The text of each API page by its path."""
    folders = {folder: f"tipcflow.{folder.name}" for folder in sorted((ROOT / "src" / "tipcflow").glob("*/"))}
    folders |= {ROOT / folder: package for folder, package in ROOTS.items()}
    pages = {}
    for folder, package in folders.items():
        if not (folder / "__init__.py").is_file():
            continue
        if names := public_names(folder / "__init__.py"):
            members = "".join(f"\n        - {name}" for name in sorted(names))
            text = f"::: {package}\n    options:\n      members:{members}\n"
            pages[f"api/{folder.name}.md"] = f"# {package}\n\n{text}"
        else:
            pages |= _module_pages(package, public_modules(folder, package))
    return pages


def _module_pages(package: str, modules: list[str]) -> dict[str, str]:
    """The pages of a package that declares public modules: one, or one per subpackage if there are many."""
    if not modules:
        return {}
    name = package.rpartition(".")[2]
    parts = {module: "" if len(modules) <= MOST_ON_A_PAGE else _subpackage(module, package) for module in modules}
    pages = {}
    for part in sorted({"", *parts.values()}):
        title = f"{package}.{part}" if part else package
        chosen = [module for module in modules if parts[module] == part]
        text = f"# {title}\n\n::: {title}\n    options:\n      members: false\n"
        text += "".join(f"\n## {module}\n\n::: {module}\n{_SECTION}" for module in chosen)
        pages[f"api/{name}/{part}.md" if part else f"api/{name}.md"] = text
    return pages


def _subpackage(module: str, package: str) -> str:
    """`b` of `a.b.c` in the package `a`; '' for `a.b`."""
    inner = module.removeprefix(f"{package}.").split(".")
    return inner[0] if len(inner) > 1 else ""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Fill in the navigation."""
    records = sorted(path.name for path in (ROOT / "docs" / "adr").glob("[0-9]*.md"))
    pages = {"api/": _api_navigation(), "adr/*.md": [f"adr/{name}" for name in records]}
    config.nav = _expanded(config.nav, pages)
    return config


def _api_navigation() -> list[Any]:
    """Pages of packages; a package on several pages is a group."""
    groups: dict[str, list[str]] = {}
    for page in api_pages():
        groups.setdefault(page.removeprefix("api/").partition("/")[0].removesuffix(".md"), []).append(page)
    return [pages[0] if len(pages) == 1 else {f"tipcflow.{name}": pages} for name, pages in groups.items()]


def _expanded(entry: Any, pages: dict[str, list[str]]) -> Any:
    if isinstance(entry, list):
        made: list[Any] = []
        for item in entry:
            made += pages[item] if isinstance(item, str) and item in pages else [_expanded(item, pages)]
        return made
    if isinstance(entry, dict):
        return {
            title: pages[value] if isinstance(value, str) and value in pages else _expanded(value, pages)
            for title, value in entry.items()
        }
    return entry


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that have no file in docs/."""
    pages = api_pages()
    for page, source in ROOT_PAGES.items():
        text = re.sub(r"\]\(docs/", "](", (ROOT / source).read_text())
        for other, file in ROOT_PAGES.items():
            text = text.replace(f"]({file})", f"]({other})")
        pages[page] = text
    for page, text in pages.items():
        files.append(File.generated(config, page, content=text))
    return files
