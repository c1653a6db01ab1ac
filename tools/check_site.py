"""Checks a built site: no page, style sheet or script loads anything from another host.

    python tools/check_site.py site

Links that a reader may click on are allowed; scripts, styles, images, fonts and frames are not.
"""

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

# The attributes that make a browser load something, by tag.
LOADS = {
    "audio": ("src",),
    "embed": ("src",),
    "iframe": ("src",),
    "img": ("src", "srcset"),
    "input": ("src",),
    "object": ("data",),
    "script": ("src",),
    "source": ("src", "srcset"),
    "track": ("src",),
    "video": ("src", "poster"),
}
# <link rel=…> that loads nothing.
INERT = {"canonical", "prev", "next", "alternate", "author", "license"}
REMOTE = re.compile(r"\s*(?:[a-z][a-z0-9+.-]*:)?//", re.IGNORECASE)
REMOTE_IN_CSS = re.compile(r"""(?:url\(\s*|@import\s+)["']?((?:https?:)?//[^"')\s]+)""")
# URLs in a script's strings. A link that a script only displays would need an entry below, too.
REMOTE_IN_JS = re.compile(r"""["'`]((?:https?|wss?)://[^"'`\s]+)""")
# URLs in the theme's scripts that no page requests, each with the reason.
UNUSED_IN_JS = {
    "http://www.w3.org/": "names of XML namespaces",
    "https://unpkg.com/resize-observer-polyfill": "only for browsers without ResizeObserver (before 2020)",
    "https://unpkg.com/mermaid@": "only for pages with a Mermaid diagram, which are reported",
    "https://api.github.com/": "only for pages with a link to a repository (SOURCE), which are reported",
    "https://${e}/api/v4/projects/": "the same, for GitLab",
}
SOURCE = "source"
# The theme loads Mermaid from a CDN when a page has such a diagram.
MERMAID = "mermaid"


class Page(HTMLParser):
    """Collects what one page loads from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.remote: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """One tag."""
        given = {name: value or "" for name, value in attrs}
        values = [given.get(name, "") for name in LOADS.get(tag, ())]
        if tag == "link" and not INERT & set(given.get("rel", "").split()):
            values.append(given.get("href", ""))
        self.remote += [f"<{tag}> {value}" for value in values if REMOTE.match(value)]
        self.remote += [f"style: {url}" for url in REMOTE_IN_CSS.findall(given.get("style", ""))]
        if MERMAID in given.get("class", "").split():
            self.remote.append("a Mermaid diagram, which the theme renders with a script from a CDN")
        if given.get("data-md-component") == SOURCE:
            self.remote.append("a link to a repository (repo_url), for which the theme queries the host's API")


def remote_loads(site: Path) -> Iterator[str]:
    """`file: what` for everything that the site loads from another host."""
    for path in sorted(site.rglob("*.html")):
        text = path.read_text()
        page = Page()
        page.feed(text)
        styles = "".join(re.findall(r"<style[^>]*>(.*?)</style>", text, re.DOTALL))
        scripts = "".join(re.findall(r"<script[^>]*>(.*?)</script>", text, re.DOTALL))
        for what in [*page.remote, *REMOTE_IN_CSS.findall(styles), *script_urls(scripts)]:
            yield f"{path.relative_to(site)}: {what}"
    for path in sorted(site.rglob("*.css")):
        for what in REMOTE_IN_CSS.findall(path.read_text()):
            yield f"{path.relative_to(site)}: {what}"
    for path in sorted(site.rglob("*.js")):
        for what in script_urls(path.read_text()):
            yield f"{path.relative_to(site)}: {what}"


def script_urls(text: str) -> Iterator[str]:
    """URLs of other hosts in the strings of a script, without those that no page requests."""
    for url in REMOTE_IN_JS.findall(text):
        if not url.startswith(tuple(UNUSED_IN_JS)):
            yield url


def main() -> int:
    """Check the site that is named on the command line."""
    site = Path(sys.argv[1])
    if not (site / "index.html").is_file():
        print(f"{site} holds no index.html", file=sys.stderr)
        return 2
    found = list(remote_loads(site))
    for line in found:
        print(line, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
