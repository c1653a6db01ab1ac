"""The public modules of a package: the paragraph `Public: …` of its docstring (ADR 19)."""

import ast
import re

_PUBLIC = re.compile(r"^Public: .*?(?=\n\s*\n|\Z)", re.MULTILINE | re.DOTALL)


def declared_modules(tree: ast.Module) -> list[str] | None:
    """The names that the docstring of a package lists, in its order; None without the paragraph."""
    found = _PUBLIC.search(ast.get_docstring(tree) or "")
    return re.findall(r"`(\w+)`", found[0]) if found else None
