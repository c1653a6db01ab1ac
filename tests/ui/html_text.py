"""HTML as a test reads it: is it well-formed, what is in it, and what does a user see."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

_VOID = {"meta", "link", "input", "wbr", "br", "img"}
_NO_TEXT = {"script", "style", "title", "option"}
_BLOCKS = {
    "p",
    "tr",
    "li",
    "h1",
    "h2",
    "section",
    "pre",
    "div",
    "dl",
    "form",
    "header",
    "summary",
    "details",
    "ul",
}


@dataclass
class Seen:
    """What a page holds; `problems` are what a browser would have to guess about."""

    tags: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    text: str = ""
    problems: list[str] = field(default_factory=list)

    def attributes(self, tag: str, name: str) -> list[str]:
        return [given[name] for found, given in self.tags if found == tag and name in given]


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.seen, self.open, self.pieces = Seen(), [], []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag in _BLOCKS:
            self.pieces.append("\n")
        if tag in ("td", "th", "dd", "a", "span", "button", "text"):
            self.pieces.append(" ")
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.seen.problems.append(f"</{tag}> at {self.getpos()} closes nothing that is open")

    def handle_data(self, data: str) -> None:
        if not (set(self.open) & _NO_TEXT):
            self.pieces.append(data if "pre" in self.open else " ".join(data.split("\n")))


def read(html: str) -> Seen:
    """The page, read."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    reader.seen.problems += [f"<{tag}> is not closed" for tag in reader.open]
    lines = [" ".join(line.split()) for line in "".join(reader.pieces).split("\n")]
    reader.seen.text = "\n".join(line for line in lines if line) + "\n"
    return reader.seen
