"""View model of a run's page."""

from dataclasses import dataclass
from functools import cached_property
from urllib.parse import urlencode

from tipcflow.domain import CheckResult, StepKind
from tipcflow.domain.numbers.units import counted, duration, utc
from tipcflow.domain.run.allocation_wait import AllocationWaitDocument
from tipcflow.execute.comparison.predecessors import Predecessors
from tipcflow.report import verify
from tipcflow.report.again import LOCAL, rerun_command
from tipcflow.report.meaning import BEING_CONFIRMED, meaning, reasons
from tipcflow.report.overview.nodes import Waiting
from tipcflow.report.result_groups import ResultGroup, group_results
from tipcflow.report.run.data import RunData
from tipcflow.report.run.lines import LegLine, StepLine, leg_lines, scope, step_lines
from tipcflow.report.run.timeline import Bar, bars, span_s, ticks
from tipcflow.report.text.names import short_step, shorten, variant_of
from tipcflow_pages.data.live import Progress
from tipcflow_pages.views.file_groups import FileGroup

# Seconds without a heartbeat after which an active run's controller may be down.
_SILENT_S = 1800.0
_LISTED_REASONS = 12
# Shorter waits are the time that the controller takes to start a step.
_LONG_WAIT_S = 60.0


@dataclass(frozen=True)
class PageContext:
    """Data of a run's page from outside the metrics database.

    Attributes:
        airflow: path of the run's DAG run in Airflow's UI; '' for none.
        waiting: its place in the queue for slots; None if it does not wait.
        in_slurm: its wait for an allocation by Slurm; None if it does not wait for one.
        excerpts: (step, node or leg, file, last log lines) of failures.
    """

    progress: Progress
    files: tuple[FileGroup, ...]
    excerpts: tuple[tuple[str, str, str, str], ...] = ()
    airflow: str = ""
    waiting: Waiting | None = None
    in_slurm: AllocationWaitDocument | None = None


class RunView:
    """Values for the template of a run's page."""

    def __init__(self, data: RunData, around: PageContext, before: Predecessors) -> None:
        self.data, self.around, self.before = data, around, before
        self.run, self.plan, self.facts = data.run, data.plan, data.facts
        waits = data.waits_for_confirmation
        self.meaning = BEING_CONFIRMED if waits else meaning(data.run.status, neutral=data.neutral)
        self.variant = variant_of(data.plan)
        self.again = rerun_command(data.run, data.plan)

    @property
    def is_queued(self) -> bool:
        """Whether the run waits for slots, or for an allocation by Slurm."""
        return self.around.waiting is not None or self.around.in_slurm is not None

    @property
    def running(self) -> bool:
        """Whether the run has no status yet."""
        return self.run.status is None

    @property
    def chain_query(self) -> str:
        """The query of the chain's page for the run's mode, semantics and environment class."""
        run = self.run
        return urlencode({"mode": run.mode, "environment": run.environment, "semantics": run.compat})

    @cached_property
    def reasons(self) -> list[str]:
        """Reasons of the status with short step names; a count of omitted reasons comes last."""
        shown = [self.shorten(reason) for reason in reasons(self.run, self.data.judged)]
        more = len(shown) - _LISTED_REASONS
        return shown if more <= 0 else [*shown[:_LISTED_REASONS], f"and {more} more"]

    @cached_property
    def doubted(self) -> str:
        """Metrics that a confirm run re-measures, with short step names."""
        confirmation = self.data.confirmation
        return ", ".join(self.shorten(key) for key in confirmation.keys) if confirmation else ""

    @cached_property
    def confirmation(self) -> str:
        """What a confirm run re-measures and the deadline of the wait; '' without a confirm run."""
        confirmation = self.data.confirmation
        if confirmation is None:
            return ""
        suspected, before = f"Suspected regression in {self.doubted}", len(confirmation.earlier)
        if self.data.waits_for_confirmation:
            until = f"until {utc(confirmation.until)} UTC at most"
            if before:
                suspected += f", shown by {counted(before, 'confirm run')}"
            return f"{suspected}: the verdict waits for a {'further ' if before else ''}confirm run, {until}:"
        by = f"{before + 1} confirm runs" if before else "a confirm run"
        return f"{suspected}, re-measured by {by}:"

    @cached_property
    def confirm_links(self) -> list[tuple[str, str]]:
        """(id, link text) of the confirm runs, in their order."""
        confirmation = self.data.confirmation
        if confirmation is None or not confirmation.earlier:
            return [(confirmation.run, "confirm run")] if confirmation else []
        return [(run, f"confirm run {at}") for at, run in enumerate((*confirmation.earlier, confirmation.run), 1)]

    @cached_property
    def silent_s(self) -> float:
        """Seconds without a heartbeat of an active run; 0 if that is not long."""
        signs = [self.run.created_at, self.around.progress.last_at]
        for attempt in self.data.attempts:
            signs += [attempt.started_at, attempt.ended_at or 0.0]
        quiet = self.data.now - max(signs)
        return quiet if self.running and quiet > _SILENT_S else 0.0

    @cached_property
    def about(self) -> list[tuple[str, str]]:
        """Facts of the run as (label, text); unknown facts are omitted."""
        run = self.run
        commit = run.suite_commit[:12] or ("working tree (no commit)" if run.suite_sha256 else "")
        commit += " with local changes" if run.suite_commit.endswith(LOCAL) else ""
        base = self.data.merge_base[:12]
        rows = [
            ("mode", f"{run.mode}, {run.compat}"),
            ("variant", self.variant),
            ("suite", " at ".join(filter(None, (run.suite, commit)))),
            ("compared with", f"runs up to the merge base {base}" if base else ""),
            ("params file", self.plan.params_file if self.plan else ""),
            ("framework", run.framework),
            ("cluster", f"{run.cluster}: {', '.join(run.nodes)}" if run.nodes else run.cluster),
            ("environment class", run.environment),
            ("environment changes since last run", self.data.unlike_before),
            ("seed", "" if run.seed is None else str(run.seed)),
            ("trigger", run.trigger),
            ("created", f"{utc(run.created_at)} UTC"),
            (
                "waiting for nodes" if self.is_queued else "waited for nodes",
                duration(self.waited_s) if self.waited_s >= _LONG_WAIT_S else "",
            ),
            ("ended", f"{utc(run.ended_at)} UTC" if run.ended_at else ""),
            (
                "duration" if run.ended_at else "running for",
                "" if self.is_queued else duration(run.elapsed_s(self.data.now)),
            ),
        ]
        return [row for row in rows if row[1]]

    @property
    def waited_s(self) -> float:
        """Seconds from the creation of the run to its first step; until now if it waits for nodes."""
        if self.is_queued:
            return self.data.now - self.run.created_at
        begun = [attempt.started_at for attempt in self.data.attempts]
        return min(begun) - self.run.created_at if begun else 0.0

    @cached_property
    def bars(self) -> list[Bar]:
        """All attempts of all steps on all nodes."""
        return bars(self.run, self.data.attempts, now=self.data.now)

    @cached_property
    def span_s(self) -> float:
        """Length of the time axis in seconds."""
        return span_s(self.run, self.bars, now=self.data.now)

    @cached_property
    def ticks(self) -> list[float]:
        """Ticks of the time axis in seconds."""
        return ticks(self.span_s)

    def share(self, seconds: float) -> float:
        """A time as a percentage of the axis."""
        return round(100 * seconds / self.span_s, 3)

    @cached_property
    def steps(self) -> list[StepLine]:
        """Steps x nodes, in plan order."""
        return step_lines(self.data, self.bars)

    @cached_property
    def legs(self) -> list[LegLine]:
        """All planned legs, in plan order."""
        return leg_lines(self.data)

    @cached_property
    def slowest_ms(self) -> float:
        """Largest latency of all legs; 0 if none was measured."""
        return max((leg.latency_ms or 0.0 for leg in self.legs), default=0.0)

    @cached_property
    def result_groups(self) -> list[ResultGroup]:
        """Check results, worst first."""
        return group_results(self.data.checks)

    @cached_property
    def trains(self) -> bool:
        """Whether the run may have training losses."""
        return any(step.kind is StepKind.TRAIN for step in self.facts.plan.steps)

    @cached_property
    def certificate_problems(self) -> list[str]:
        """Errors of the certificate; empty if it is valid or missing."""
        return verify(self.data.certificate) if self.data.certificate is not None else []

    def about_check(self, result: CheckResult) -> str:
        """Subject of a check result, as text."""
        return scope(self.data, result)

    def short(self, step: str) -> str:
        """Return a step's name, without the variant if there is only one."""
        return short_step(self.plan, step)

    def shorten(self, text: str) -> str:
        """Replace step ids in a text by their short names."""
        return shorten(self.plan, text)
