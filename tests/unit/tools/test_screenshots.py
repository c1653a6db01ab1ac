"""The images of docs/screenshots are those that a page shows and that `make screenshots` takes."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_every_screenshot_has_a_page_and_an_entry_of_the_script() -> None:
    taken = set(re.findall(r'"([\w-]+\.png)": Picture', (ROOT / "tools" / "screenshots.py").read_text()))
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, check=True, capture_output=True, text=True)
    pages = "".join((ROOT / name).read_text() for name in listed.stdout.split())
    used = set(re.findall(r"screenshots/([\w-]+\.png)\)", pages))
    assert {path.name for path in (ROOT / "docs" / "screenshots").iterdir()} == taken == used
