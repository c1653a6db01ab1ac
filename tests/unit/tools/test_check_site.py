"""A documentation page that loads something from another host is reported."""

import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[3] / "tools" / "check_site.py"
LOCAL = """<html><head><link rel="stylesheet" href="assets/site.css"><link rel="canonical" href="https://example.org/">
</head><body><img src="image.png"><a href="https://example.org/">elsewhere</a></body></html>"""


def check(site: Path, page: str, style: str = "") -> subprocess.CompletedProcess[str]:
    site.mkdir()
    (site / "index.html").write_text(page)
    (site / "site.css").write_text(style)
    return subprocess.run([sys.executable, str(TOOL), str(site)], capture_output=True, text=True, timeout=60)


def test_links_to_other_hosts_are_allowed(tmp_path: Path) -> None:
    result = check(tmp_path / "site", LOCAL, "a { background: url(../images/a.png) }")
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize(
    "load",
    [
        '<script src="https://cdn.example.org/a.js"></script>',
        '<link rel="stylesheet" href="//fonts.example.org/a.css">',
        '<link rel="preconnect" href="https://fonts.example.org">',
        '<img src="http://example.org/badge.svg">',
        '<img srcset="https://example.org/badge.svg 2x">',
        '<iframe src="https://example.org/"></iframe>',
        "<style>@import 'https://example.org/a.css';</style>",
        '<p style="background: url(https://example.org/a.png)"></p>',
        '<pre class="mermaid"></pre>',
        '<script>fetch("https://example.org/count")</script>',
        '<a data-md-component="source" href="https://example.org/repository"></a>',
    ],
)
def test_a_page_that_loads_from_another_host_fails(tmp_path: Path, load: str) -> None:
    result = check(tmp_path / "site", LOCAL.replace("</body>", load + "</body>"))
    assert result.returncode == 1
    assert result.stderr.startswith("index.html: ")


def test_a_style_sheet_that_loads_from_another_host_fails(tmp_path: Path) -> None:
    result = check(tmp_path / "site", LOCAL, '@font-face { src: url("https://example.org/a.woff2") }')
    assert result.returncode == 1
    assert result.stderr == "site.css: https://example.org/a.woff2\n"


@pytest.mark.parametrize(
    "script",
    [
        'fetch("https://example.org/api")',
        "import('https://cdn.example.org/a.js')",
        "const socket = new WebSocket(`wss://example.org/${name}`)",
        'let base = "https://cdn.example.org/"; load(base + "a.js")',
    ],
)
def test_a_script_that_loads_from_another_host_fails(tmp_path: Path, script: str) -> None:
    (tmp_path / "site" / "assets").mkdir(parents=True)
    (tmp_path / "site" / "index.html").write_text(LOCAL)
    (tmp_path / "site" / "assets" / "app.js").write_text(script)
    result = subprocess.run(
        [sys.executable, str(TOOL), str(tmp_path / "site")], capture_output=True, text=True, timeout=60
    )
    assert result.returncode == 1
    assert result.stderr.startswith("assets/app.js: ")


def test_urls_that_no_page_requests_are_allowed(tmp_path: Path) -> None:
    result = check(
        tmp_path / "site", LOCAL.replace("</body>", '<script>n = "http://www.w3.org/2000/svg"</script>')
    )
    assert (result.returncode, result.stderr) == (0, "")


def test_an_empty_folder_is_an_error(tmp_path: Path) -> None:
    result = subprocess.run([sys.executable, str(TOOL), str(tmp_path)], capture_output=True, text=True, timeout=60)
    assert result.returncode == 2
