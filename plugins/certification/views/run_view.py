"""A run's story as what its page shows."""

from dataclasses import dataclass
from functools import cached_property

from certification.data.live import Progress
from certification.data.run_data import Story
from certification.views.rows import FileGroup, LegLine, StepLine, leg_lines, step_lines
from certification.views.words import took, when
from tipcflow.cli.output.names import short_step, variant_of
from tipcflow.domain import CheckResult, StepKind
from tipcflow.report import verify
from tipcflow.report.again import LOCAL, again
from tipcflow.report.answers import Answers, answers
from tipcflow.report.meaning import BEING_CONFIRMED, meaning, reasons
from tipcflow.report.timeline import Bar, bars, span_s, ticks

# A run that goes on without a sign for so long, in seconds, may have lost whoever ran it.
_SILENT_S = 1800.0
_LISTED_REASONS = 12


@dataclass(frozen=True)
class Around:
    """What a run's page shows from outside the metrics database.

    Attributes:
        airflow: path of its DAG run in Airflow's UI, '' for none.
        excerpts: (step, node or leg, file, last lines) of what went wrong.
    """

    progress: Progress
    files: tuple[FileGroup, ...]
    excerpts: tuple[tuple[str, str, str, str], ...] = ()
    airflow: str = ""


class RunView:
    """What the template of a run's page asks for."""

    def __init__(self, story: Story, around: Around) -> None:
        self.story, self.around = story, around
        self.run, self.plan, self.facts = story.run, story.plan, story.facts
        waits = story.waits_for_confirmation
        self.meaning = BEING_CONFIRMED if waits else meaning(story.run.status, neutral=story.neutral)
        self.variant = variant_of(story.plan)
        self.again = again(story.run, story.plan)

    @property
    def running(self) -> bool:
        """Whether it has no status yet."""
        return self.run.status is None

    @cached_property
    def reasons(self) -> list[str]:
        """Why, sentence by sentence, steps by their short names; how many more there are comes last."""
        found = [self.shorten(one) for one in reasons(self.run, self.story.why)]
        more = len(found) - _LISTED_REASONS
        return found if more <= 0 else [*found[:_LISTED_REASONS], f"and {more} more"]

    @cached_property
    def doubted(self) -> str:
        """What a confirm run measures once more, by short names."""
        asked = self.story.confirmation
        return ", ".join(self.shorten(key) for key in asked.keys) if asked else ""

    @cached_property
    def confirmation(self) -> str:
        """What of this run is measured once more, and until when that is waited for; '' when nothing is or was."""
        asked = self.story.confirmation
        if asked is None:
            return ""
        if self.story.waits_for_confirmation:
            until = f"until {when(asked.until)} UTC at most"
            return f"{self.doubted} looks worse than before and is measured once more before the verdict, {until}:"
        return f"{self.doubted} looked worse than before and was to be measured once more:"

    @cached_property
    def silent_s(self) -> float:
        """Seconds without any sign of a run that goes on, 0 when that is not long."""
        signs = [self.run.created_at, self.around.progress.last_at]
        for attempt in self.story.attempts:
            signs += [attempt.started_at, attempt.ended_at or 0.0]
        quiet = self.story.now - max(signs)
        return quiet if self.running and quiet > _SILENT_S else 0.0

    @cached_property
    def about(self) -> list[tuple[str, str]]:
        """What was tested on what, as names and texts; nothing where nothing is known."""
        run = self.run
        commit = run.suite_commit[:12] or ("its folder as it was" if run.suite_sha256 else "")
        commit += " with local changes" if run.suite_commit.endswith(LOCAL) else ""
        base = self.story.merge_base[:12]
        spent = (run.ended_at or self.story.now) - run.created_at
        rows = [
            ("mode", f"{run.mode}, {run.compat}"),
            ("variant", self.variant),
            ("suite", " at ".join(filter(None, (run.suite, commit)))),
            ("compared with", f"runs up to the merge base {base}" if base else ""),
            ("params file", self.plan.params_file if self.plan else ""),
            ("framework", run.framework),
            ("cluster", f"{run.cluster}: {', '.join(run.nodes)}" if run.nodes else run.cluster),
            ("environment class", run.environment),
            ("unlike before", self.story.unlike_before),
            ("seed", "" if run.seed is None else str(run.seed)),
            ("trigger", run.trigger),
            ("started", f"{when(run.created_at)} UTC"),
            ("ended", f"{when(run.ended_at)} UTC" if run.ended_at else ""),
            ("took" if run.ended_at else "running for", took(spent)),
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
    def ticks(self) -> list[float]:
        """Marks of the time axis, seconds."""
        return ticks(self.span_s)

    def share(self, seconds: float) -> float:
        """A time as a percentage of the axis."""
        return round(100 * seconds / self.span_s, 3)

    @cached_property
    def steps(self) -> list[StepLine]:
        """Steps x nodes in the order of the plan."""
        return step_lines(self.story, self.bars)

    @cached_property
    def legs(self) -> list[LegLine]:
        """Every planned leg, in the order of the plan."""
        return leg_lines(self.story)

    @cached_property
    def slowest_ms(self) -> float:
        """The largest latency of all legs, 0 when none was measured."""
        return max((leg.latency_ms or 0.0 for leg in self.legs), default=0.0)

    @cached_property
    def answers(self) -> list[Answers]:
        """What the checks said, worst first."""
        return answers(self.story.checks)

    @cached_property
    def trains(self) -> bool:
        """Whether there may be losses to draw."""
        return any(step.kind is StepKind.TRAIN for step in self.facts.plan.steps)

    @cached_property
    def certificate_problems(self) -> list[str]:
        """What is wrong with the certificate; nothing when it holds or there is none."""
        return verify(self.story.certificate) if self.story.certificate is not None else []

    def about_check(self, result: CheckResult) -> str:
        """What an answer is about, in words."""
        return " ".join(filter(None, (self.short(result.step), result.leg, result.metric)))

    def short(self, step: str) -> str:
        """A step's name, without the variant when there is only one."""
        return short_step(self.plan, step)

    def shorten(self, said: str) -> str:
        """A text in which steps have their short names."""
        for step in self.facts.plan.steps:
            said = said.replace(step.id, self.short(step.id))
        return said
