"""Tiny wheels of pure Python, made here: no test reads a package index."""

import hashlib
import zipfile
from pathlib import Path


def make_wheel(
    folder: Path, name: str = "toyframe", version: str = "1.0", *, python: str = "py3", text: str = ""
) -> Path:
    """A wheel with the module `name`, whose `__version__` is the version and `word` is the text."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{version}-{python}-none-any.whl"
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}/__init__.py": f"__version__ = {version!r}\nword = {text!r}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: {python}-none-any\n",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for file, content in files.items():
            archive.writestr(zipfile.ZipInfo(file), content)
        record = "".join(f"{file},,\n" for file in files) + f"{info}/RECORD,,\n"
        archive.writestr(zipfile.ZipInfo(f"{info}/RECORD"), record)
    return path


def sha256_of(path: Path) -> str:
    """Hash of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
