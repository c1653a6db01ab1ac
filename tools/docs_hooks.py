"""Hooks of mkdocs: pages that are made from other files, and navigation entries that follow the files.

- contributing.md, changelog.md and security.md are the files in the repository's root;
- api/<package>.md documents each package of tipcflow that declares `__all__`, from its docstrings;
- `api/` and `adr/*.md` in the navigation expand to all pages of that folder.
"""

import ast
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
ROOT_PAGES = {"contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md", "security.md": "SECURITY.md"}


def public_names(init: Path) -> list[str]:
    """What `__all__` of a package lists; empty without one."""
    for node in ast.parse(init.read_text()).body:
        if isinstance(node, ast.Assign) and any(getattr(t, "id", "") == "__all__" for t in node.targets):
            return [str(name) for name in ast.literal_eval(node.value)]
    return []


def api_pages() -> dict[str, str]:
    """The text of each API page by its path."""
    pages = {}
    for init in sorted((ROOT / "src" / "tipcflow").glob("*/__init__.py")):
        if names := public_names(init):
            package = f"tipcflow.{init.parent.name}"
            members = "".join(f"\n        - {name}" for name in sorted(names))
            pages[f"api/{init.parent.name}.md"] = (
                f"# {package}\n\n::: {package}\n    options:\n      members:{members}\n"
            )
    return pages


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Fill in the navigation."""
    records = sorted(path.name for path in (ROOT / "docs" / "adr").glob("[0-9]*.md"))
    pages = {"api/": list(api_pages()), "adr/*.md": [f"adr/{name}" for name in records]}
    config.nav = _expanded(config.nav, pages)
    return config


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
