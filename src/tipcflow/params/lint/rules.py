"""All lint rules, and their findings in one file."""

from collections.abc import Callable

from tipcflow.domain import ConfigError
from tipcflow.params.blocks import split_blocks
from tipcflow.params.dialect import Dialect
from tipcflow.params.lint import devices, inference, modes, scripts, shape, tail, trainers, values
from tipcflow.params.lint.subject import Finding, Rule, Subject
from tipcflow.params.registry.names import load_dialect

GROUPS: dict[str, tuple[Rule, ...]] = {
    "Lines": shape.RULES,
    "Values": values.RULES,
    "Mode tables": modes.RULES,
    "Devices": devices.RULES,
    "Trainers": trainers.RULES,
    "Inference": inference.RULES,
    "Sections": tail.RULES,
    "The script's own defects": scripts.RULES,
}


def all_rules() -> list[Rule]:
    """Every rule, group by group."""
    return [rule for group in GROUPS.values() for rule in group]


def lint_text(
    text: str, *, file: str, dialect: Dialect, cpu_lacks: Callable[[str], str] = lambda _: ""
) -> list[Finding]:
    """What the dialect's script would drop, misread or skip in a params file, by line.

    If lines are misplaced, only that is reported: every other finding would be about another slot.

    Args:
        text, file: the file's content, and its name for messages.
        dialect: the dialect of the script.
        cpu_lacks: precision word -> why the CPU does not support it, '' if it does.
    """
    subject = Subject(text, dialect, cpu_lacks)
    findings = [finding for rule in all_rules() if rule.shape for finding in _apply(rule, subject, file)]
    if not any(finding.rule in ("crlf", "blank-line", "line-shape", "list-length") for finding in findings):
        findings += [finding for rule in all_rules() if not rule.shape for finding in _apply(rule, subject, file)]
    return sorted(findings, key=lambda finding: (finding.line, finding.rule))


def lint_lines(text: str, *, file: str) -> list[Finding]:
    """Problems of a file of any kind: Windows line endings, whitespace-only lines."""
    subject = Subject(text, load_dialect("models/template"))
    return [finding for rule in shape.ANY_FILE for finding in _apply(rule, subject, file)]


def lint_blocks(text: str, *, file: str, dialect: Dialect) -> list[Finding]:
    """Problems in the lines of a file of several blocks: the first line that does not match its layout."""
    findings = lint_lines(text, file=file)
    try:
        split_blocks(text, file=file, dialect=dialect)
    except ConfigError as error:
        rule = next(rule for rule in shape.RULES if rule.id == "line-shape")
        message = f"{error.key or 'line'}: {error.what}; found {error.found!r}; expected {error.expected}"
        findings.append(Finding(file, max(error.line, 1), rule.id, rule.severity, message, shape.COMPARE))
    return findings


def _apply(rule: Rule, subject: Subject, file: str) -> list[Finding]:
    return [
        Finding(file, hit.line, rule.id, hit.severity or rule.severity, hit.message, hit.fix)
        for hit in rule.check(subject)
    ]
