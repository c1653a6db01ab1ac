"""A run's story as the rows of its page."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from certification.story import Story
from certification.words import took, when
from tipcflow.cli.names import short_step, variant_of
from tipcflow.domain import Leg, Step
from tipcflow.report import leg_rows, step_rows, verify
from tipcflow.report.again import again
from tipcflow.report.answers import Answers, answers
from tipcflow.report.meaning import meaning, reasons
from tipcflow.report.rows import LegRow
from tipcflow.report.timeline import Bar, bars, span_s


@dataclass(frozen=True)
class StepLine:
    """One step on one node: `bars` are its tries."""

    step: str
    name: str
    kind: str
    node: str
    first: bool
    rows: int
    status: str
    reason: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True)
class LegLine:
    """One inference combination with what was measured of it; None where nothing was."""

    step: str
    leg: Leg
    status: str
    reason: str
    latency_ms: float | None
    memory_mb: float | None
    seconds: float | None


class RunView:
    """What the template asks for."""

    def __init__(self, story: Story, home: Path) -> None:
        self.story, self.home = story, home
        self.run, self.plan, self.facts = story.run, story.plan, story.facts
        self.meaning, self.reasons = meaning(story.run.status), reasons(story.run)
        self.variant = variant_of(story.plan)
        self.again = again(story.run, story.plan)
        self.took = (story.run.ended_at or story.now) - story.run.created_at

    @cached_property
    def about(self) -> list[tuple[str, str]]:
        """What was tested on what, as names and texts; nothing where nothing is known."""
        run = self.run
        commit = run.suite_commit[:12] or ("its folder as it was" if run.suite_sha256 else "")
        rows = [
            ("mode", f"{run.mode}, {run.compat}"),
            ("variant", self.variant),
            ("suite", " at ".join(filter(None, (run.suite, commit)))),
            ("framework", run.framework),
            ("cluster", f"{run.cluster}: {', '.join(run.nodes)}" if run.nodes else run.cluster),
            ("environment", run.environment),
            ("seed", "" if run.seed is None else str(run.seed)),
            ("trigger", run.trigger),
            ("started", f"{when(run.created_at)} UTC"),
            ("ended", f"{when(run.ended_at)} UTC" if run.ended_at else ""),
            ("took", took(self.took)),
        ]
        return [row for row in rows if row[1]]

    @cached_property
    def bars(self) -> list[Bar]:
        """Every try of every step on every node."""
        return bars(self.run, self.story.attempts, now=self.story.now)

    @cached_property
    def span_s(self) -> float:
        """Seconds that the time axis covers."""
        return span_s(self.run, self.bars, now=self.story.now)

    @cached_property
    def steps(self) -> list[StepLine]:
        """Steps x nodes in the order of the plan."""
        said = {row.step: row for row in step_rows(self.facts)}
        lines = []
        for step in self.facts.plan.steps:
            row = said[step.id]
            word = self.story.said(step.id, row.status)
            lines += [
                StepLine(
                    step=step.id,
                    name=self.short(step.id),
                    kind=step.kind.value,
                    node=node,
                    first=number == 0,
                    rows=len(step.nodes),
                    status=word,
                    reason=row.reason,
                    bars=tuple(bar for bar in self.bars if (bar.step, bar.node) == (step.id, node)),
                )
                for number, node in enumerate(step.nodes)
            ]
        return lines

    @cached_property
    def legs(self) -> list[LegLine]:
        """Every planned leg, in the order of the plan."""
        spent = {(one.step, one.leg): one.duration_s for one in self.facts.records if one.leg}
        said = {(row.step, row.leg): row for row in leg_rows(self.facts)}
        return [self._leg(step, leg, said, spent) for step in self.facts.plan.steps for leg in step.legs]

    def _leg(
        self, step: Step, leg: Leg, said: dict[tuple[str, str], LegRow], spent: dict[tuple[str, str], float]
    ) -> LegLine:
        row = said[step.id, leg.id]
        numbers = self.story.medians
        memory = "gpu_rss" if leg.device == "gpu" else "cpu_rss"
        return LegLine(
            step=self.short(step.id),
            leg=leg,
            status=self.story.said(f"{step.id}/{leg.id}", row.status),
            reason=row.reason,
            latency_ms=row.latency_ms,
            memory_mb=numbers.get((step.id, leg.id, memory)),
            seconds=spent.get((step.id, leg.id)),
        )

    @cached_property
    def answers(self) -> list[Answers]:
        """What the checks said, worst first."""
        return answers(self.story.checks)

    @cached_property
    def certificate_problems(self) -> list[str] | None:
        """What is wrong with the certificate; None when there is none."""
        return None if self.story.certificate is None else verify(self.story.certificate)

    def short(self, step: str) -> str:
        """A step's name, without the variant when there is only one."""
        return short_step(self.plan, step)
