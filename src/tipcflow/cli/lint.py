"""`tipcflow lint PATH…`: lines that the suites' scripts would silently drop, misread or skip."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tipcflow.cli.output.output import print_json
from tipcflow.cli.output.records import AsCsv, print_records, refuse_both
from tipcflow.domain import ConfigError
from tipcflow.domain.errors import why_unreadable

if TYPE_CHECKING:
    from tipcflow.params.lint.subject import Finding

# The rule about suite files, with what it means for a run; all other rules are about params files.
GLOB_RULE = "glob-unmatched"
_GLOB_WHY = (
    "a glob of `params` or `cases.params` that matches no file selects no chain, "
    "and a case with it alone never applies"
)
_SUITE = "suite"
# Columns of --csv.
_COLUMNS = ("file", "line", "rule", "severity", "message", "fix", "dialect")


def lint(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="PATH", help="Params files, or folders to search.", show_default=False),
    ] = None,
    suite: Annotated[
        str,
        typer.Option(
            "--suite",
            "-s",
            help="Suite whose dialects apply, and whose file is examined. Default: assumed from path and text.",
        ),
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    as_csv: AsCsv = False,
    rules: Annotated[bool, typer.Option("--rules", help="Print the list of all rules.")] = False,
) -> None:
    """Report what a suite's script would silently drop, misread or skip. Exit code 1 if there are errors."""
    refuse_both(as_json=as_json, as_csv=as_csv)
    if rules:
        typer.echo(_reference_page(), nl=False)
        return
    if not paths:
        raise ConfigError("is missing", key="PATH", expected="params files, or folders that contain some")
    choose = _chooser(suite)
    files = [_lint_file(path, choose, named) for path, named in _walk(paths)]
    if suite:
        files.insert(0, _lint_suite(suite))
    findings = [finding for file in files for finding in file.findings]
    counts = Counter(str(finding.severity) for finding in findings)
    if as_json:
        print_json({"files": [file.as_json() for file in files], "counts": dict(counts)})
    elif as_csv:
        print_records([record for file in files for record in file.records()], names=_COLUMNS)
    else:
        for finding in findings:
            typer.echo(str(finding))
        _print_summary(files, counts)
    raise typer.Exit(1 if counts["error"] else 0)


class LintedFile:
    """One file: the dialect it was read as, and the findings."""

    def __init__(self, path: str, kind: str, dialect: str, why: str, findings: "Sequence[Finding]") -> None:
        self.path, self.kind, self.dialect, self.why, self.findings = path, kind, dialect, why, findings

    def as_json(self) -> dict[str, object]:
        """The file for --json; `dialect` is '' when no dialect applied."""
        findings = [
            {"line": f.line, "rule": f.rule, "severity": str(f.severity), "message": f.message, "fix": f.fix}
            for f in self.findings
        ]
        return {**self._header(), "findings": findings}

    def records(self) -> list[dict[str, object]]:
        """A record per finding for --csv."""
        return [
            {"file": self.path, "dialect": self.dialect, **finding}
            for finding in self.as_json()["findings"]  # type: ignore[attr-defined]
        ]

    def _header(self) -> dict[str, object]:
        return {"file": self.path, "kind": self.kind, "dialect": self.dialect, "chosen": self.why}


def lint_files(paths: Sequence[Path]) -> "list[Finding]":
    """All findings about params files, whose dialects are assumed from their paths and texts."""
    choose = _chooser("")
    return [finding for path in paths for finding in _lint_file(path, choose, named=False).findings]


def _print_summary(files: Sequence[LintedFile], counts: "Counter[str]") -> None:
    read = Counter((file.dialect, file.why) for file in files if file.dialect)
    for (dialect, why), count in sorted(read.items()):
        typer.echo(f"{_many(count, 'file')} read as {dialect}, {why}")
    for file in files:
        if file.kind == _SUITE:
            typer.echo(f"1 suite file: {file.why}")
    others = Counter(file.kind for file in files if not file.dialect and file.kind != _SUITE)
    for kind, count in sorted(others.items()):
        typer.echo(f"{_many(count, 'file')} of kind {kind}: only line endings were checked")
    typer.echo(", ".join(_many(counts[word], word) for word in ("error", "warning", "note")))


def _many(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _walk(paths: Sequence[Path]) -> Iterator[tuple[Path, bool]]:
    """Yield files, and whether each was given explicitly; hidden folders are skipped.

    Raises:
        ConfigError: a path does not exist, or a folder contains no text file.
    """
    for path in paths:
        if path.is_file():
            yield path, True
            continue
        if not path.is_dir():
            raise ConfigError("no such file or folder", key="PATH", found=str(path))
        below = [
            file
            for file in sorted(path.rglob("*.txt"))
            if file.is_file() and not any(part.startswith(".") for part in file.relative_to(path).parts)
        ]
        if not below:
            raise ConfigError(
                "the folder contains no params file", key="PATH", found=str(path), expected="*.txt below it"
            )
        yield from ((file, False) for file in below)


Choose = Callable[[str, str], tuple[str, str]]


def _chooser(suite: str) -> Choose:
    """A function (text, path) -> dialect and reason; from a suite, or assumed from path and text."""
    from tipcflow.params.lint.guess import fits, guess_dialect

    if not suite:
        return lambda text, path: _assumed(*guess_dialect(text, path))
    from tipcflow.config.settings import settings
    from tipcflow.config.suite import load_suite
    from tipcflow.execute.resolve.suite_file import check_dialects

    loaded = load_suite(suite, settings().config_dir)
    check_dialects(loaded, suite, settings().config_dir)
    dialects = loaded.dialects

    def choose(text: str, _: str) -> tuple[str, str]:
        from tipcflow.params.lint.guess import nearest

        dialect = next((name for name in dialects if fits(text, name)), None)
        return dialect or nearest(text, dialects), f"of suite {suite}"

    return choose


def _lint_suite(suite: str) -> LintedFile:
    """Lint a suite's own file: globs that match no file of the suite."""
    from tipcflow.config.settings import settings
    from tipcflow.config.suite import find_config, load_suite
    from tipcflow.execute.resolve.suite_file import unmatched_globs
    from tipcflow.params.lint.subject import Finding, Severity

    config_dir = settings().config_dir
    loaded = load_suite(suite, config_dir)
    globs = unmatched_globs(loaded, suite, config_dir, settings().home / "suites")
    path = str(find_config(suite, config_dir / "suites", what="suite"))
    if globs is None:
        return LintedFile(
            path, _SUITE, "", "its globs were not checked: this machine has no files of the suite", []
        )
    findings = [
        Finding(
            each.file,
            each.line,
            GLOB_RULE,
            Severity.WARNING,
            f"{each.key}: {each.glob!r} matches no file of the suite",
            "correct or remove the glob; paths are relative to the suite's root",
        )
        for each in globs
    ]
    return LintedFile(path, _SUITE, "", "its globs were compared with the suite's files", findings)


def _assumed(name: str, why: str) -> tuple[str, str]:
    return name, f"assumed: {why}"


def _lint_file(path: Path, choose: Choose, named: bool) -> LintedFile:
    from tipcflow.params import load_dialect
    from tipcflow.params.kinds import recognise
    from tipcflow.params.lint.rules import lint_lines, lint_text

    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot be read: {why_unreadable(error)}", file=str(path)) from error
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        return LintedFile(str(path), "other", "", "", [_not_text(str(path), data, error)] if named else [])
    full = str(path.resolve())
    kind = recognise(text, full)
    if kind.refused and not (named and kind.kind == "other"):
        return LintedFile(str(path), kind.kind, "", "", lint_lines(text, file=str(path)))
    dialect, why = choose(text, full)
    if kind.kind not in ("train", "other"):
        return _lint_other(path, text, kind.kind, dialect, why)
    findings = lint_text(text, file=str(path), dialect=load_dialect(dialect), cpu_lacks=cpu_lacks())
    return LintedFile(str(path), "train", dialect, why, findings)


def _lint_other(path: Path, text: str, kind: str, dialect: str, why: str) -> LintedFile:
    """Lint a file of another script of the suite, by that script's dialect if the suite has one."""
    from tipcflow.params import load_dialect
    from tipcflow.params.lint.guess import fits, nearest
    from tipcflow.params.lint.rules import lint_blocks, lint_lines, lint_text
    from tipcflow.params.registry.names import family_dialects

    names = family_dialects(dialect, kind)
    if not names:
        return LintedFile(str(path), kind, "", "", lint_lines(text, file=str(path)))
    name = next((each for each in names if fits(text, each)), None) or nearest(text, names)
    chosen = load_dialect(name)
    if chosen.blocks is not None:
        return LintedFile(str(path), kind, name, why, lint_blocks(text, file=str(path), dialect=chosen))
    findings = lint_text(text, file=str(path), dialect=chosen, cpu_lacks=cpu_lacks())
    return LintedFile(str(path), kind, name, why, findings)


def _not_text(path: str, data: bytes, error: UnicodeDecodeError) -> "Finding":
    from tipcflow.params.lint.subject import Finding, Severity

    line = data[: error.start].count(b"\n") + 1
    message = f"not UTF-8 text: {data[error.start : error.end]!r}"
    return Finding(path, line, "not-text", Severity.ERROR, message, "save the file as UTF-8")


def cpu_lacks() -> Callable[[str], str]:
    """A function precision -> why this machine's CPU lacks it; '' when supported or when CPU flags are unknown."""
    from tipcflow.plan.spec.feasible import unsupported_by_cpu

    flags = _cpu_flags()
    return lambda word: unsupported_by_cpu(word, flags, "this machine")


def _cpu_flags() -> frozenset[str] | None:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    flags = next((line.partition(":")[2] for line in lines if line.startswith("flags")), None)
    return None if flags is None else frozenset(flags.split())


def _reference_page() -> str:
    """The text of docs/reference/lint.md."""
    from tipcflow.params.lint.rules import GROUPS
    from tipcflow.report.text.markdown_text import markdown_cell, raw_table

    lines = [
        "# `tipcflow lint` rules",
        "",
        "<!-- Written by `tipcflow lint --rules > docs/reference/lint.md`; do not edit. -->",
        "",
        "Suites' scripts read params files by position and do not report what they drop, misread or skip.",
        "`tipcflow lint PATH… [--suite S] [--json]` reports it, as `file:line: rule: severity: message` with a",
        "fix.",
        "",
        "| severity | meaning |",
        "|---|---|",
        "| error | the file does not have the intended effect, and a change of its text fixes it |",
        "| warning | a defect of the script, or probably unintended |",
        "| note | works as intended, for information |",
        "",
        "Exit code 1 if there are errors, 2 for invalid arguments. A file that is not UTF-8 text is an error",
        "`not-text`.",
    ]
    rows = [(f"`{GLOB_RULE}`", "warning", _GLOB_WHY)]
    lines += ["", "## Suite files (with `--suite`)", "", raw_table(("rule", "severity", "what a run does"), rows)]
    for title, rules in GROUPS.items():
        rows = [(f"`{rule.id}`", str(rule.severity), markdown_cell(rule.why)) for rule in rules]
        lines += ["", f"## {title}", "", raw_table(("rule", "severity", "what the script does"), rows)]
    return "\n".join(lines) + "\n"
