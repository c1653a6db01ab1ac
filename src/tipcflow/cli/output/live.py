"""The live display of a run: steps x nodes, elapsed time, last training line; plain lines without a terminal."""

import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tipcflow.cli.output.json_lines import has_json_lines, print_json_line
from tipcflow.domain import Plan, Status, Step
from tipcflow.domain.numbers.units import clock, duration
from tipcflow.execute.progress import Event, Kind
from tipcflow.parse import last_training_line
from tipcflow.report.text.names import short_step, variant_of

if TYPE_CHECKING:
    from rich.console import Console, Group
    from rich.text import Text

_LINE_EVERY_S = 5.0


@dataclass
class _StepState:
    started: float = 0.0
    ended: float = 0.0
    status: Status | None = None
    reason: str = ""
    nodes: dict[str, str] = field(default_factory=dict)
    legs_done: int = 0


class LiveDisplay:
    """Context manager that displays a run's events as they arrive; thread-safe.

    Without a terminal, or on a dumb one (TERM=dumb), it prints one line per change, and the last training line at
    most every five seconds and at the end of its step. With `TIPCFLOW_JSON_LOGS`, the lines are JSON, also on a
    terminal.
    """

    def __init__(self) -> None:
        self._console = _console()
        self._live: Any = None
        self._is_json = has_json_lines()
        self._lock = threading.RLock()
        self._mute = False
        self._plan_of: Callable[[], Plan | None] = lambda: None
        self._plan: Plan | None = None
        self._run = ""
        self._note = ""
        self._begun = time.time()
        self._steps: dict[str, _StepState] = {}
        self._training: dict[tuple[str, str], str] = {}
        self._partial: dict[tuple[str, str], str] = {}
        self._unprinted: Event | None = None
        self._last_line_at = 0.0

    def __enter__(self) -> "LiveDisplay":
        if self._console.is_terminal and not self._console.is_dumb_terminal and not self._is_json:
            from rich.live import Live

            self._live = Live(
                get_renderable=self._render, console=self._console, refresh_per_second=4, transient=True
            )
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop live updates; the final table stays on the screen. Idempotent."""
        live, self._live = self._live, None
        if live is not None:
            with contextlib.suppress(OSError):
                live.stop()
                if self._steps:
                    self._console.print(self._render())

    def bind(self, plan_of: Callable[[], Plan | None]) -> None:
        """Set the function that returns the plan once it exists."""
        self._plan_of = plan_of

    def note(self, text: str) -> None:
        """Show a line about the run as a whole."""
        self.take(Event(Kind.NOTE, text))

    def take(self, event: Event) -> None:
        """Display an event of the execution."""
        with self._lock:
            self._apply(event)
            if self._live is None and not self._mute:
                try:
                    self._print_line(event)
                except OSError:
                    # The reader closed the pipe (`… 2>&1 | head`, a closed terminal); the run continues.
                    self._mute = True

    def _apply(self, event: Event) -> None:
        state = self._steps.setdefault(event.step, _StepState()) if event.step else None
        if event.kind is Kind.RUN:
            self._run = event.text
        elif event.kind is Kind.NOTE:
            self._note = event.text
        elif state is None:
            return
        elif event.kind is Kind.STEP_STARTED:
            state.started = event.at
            state.nodes = dict.fromkeys(event.node.split(","), "starting")
            self._note = ""
            self._plan = self._plan or self._plan_of()
        elif event.kind is Kind.STATE:
            state.nodes[event.node] = event.text
        elif event.kind is Kind.LOG:
            self._take_log(event)
        elif event.kind is Kind.LEG and event.status is None:
            state.legs_done += 1
        elif event.kind is Kind.STEP_ENDED:
            self._plan = self._plan or self._plan_of()
            state.ended, state.status, state.reason = event.at, event.status, event.text
            for known in (self._training, self._partial):
                for key in [key for key in known if key[0] == event.step]:
                    del known[key]

    def _take_log(self, event: Event) -> None:
        key = event.step, event.node
        text = self._partial.get(key, "") + event.text
        line = last_training_line(text)
        # Keep only the incomplete last line until the next piece arrives.
        self._partial[key] = text[-4096:]
        if line and line != self._training.get(key):
            self._training[key] = line
            self._unprinted = replace(event, text=line)

    def _render(self) -> "Group":
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        with self._lock:
            title = f"run {self._run}   {clock(time.time() - self._begun)}   {variant_of(self._plan)}"
            table = Table(box=None, pad_edge=False, show_edge=False, header_style="dim")
            for column in ("step", "nodes", "time", "status"):
                table.add_column(column, overflow="fold")
            for step in self._known_steps():
                state = self._steps.get(step.id, _StepState())
                name = short_step(self._plan, step.id)
                table.add_row(name, self._nodes_of(step, state), _elapsed(state), _status_text(state))
            below = []
            if self._live is not None:
                below = [f"{node}: {line}" for (_, node), line in sorted(self._training.items())]
                below += [self._note] if self._note else []
            lines = [Text(line, style="dim", no_wrap=True, overflow="ellipsis") for line in below]
            return Group(Text(title.rstrip(), style="bold"), table, *lines)

    def _known_steps(self) -> list[Step]:
        return list(self._plan.steps) if self._plan is not None else []

    @staticmethod
    def _nodes_of(step: Step, state: _StepState) -> str:
        running = [leg for leg in step.legs if not leg.not_run]
        if state.status is None and state.started:
            states = " ".join(f"{node}:{word}" for node, word in state.nodes.items())
            return f"{states} {state.legs_done}/{len(running)} legs" if running else states
        return " ".join(step.nodes)

    def _print_line(self, event: Event) -> None:
        if event.kind in (Kind.LOG, Kind.STEP_ENDED):
            self._print_training(event)
        step = short_step(self._plan, event.step)
        text = ""
        if event.kind is Kind.RUN:
            text = f"run {event.text}"
        elif event.kind is Kind.NOTE and event.text:
            text = event.text
        elif event.kind is Kind.STEP_STARTED:
            text = f"{step} started on {event.node.replace(',', ', ')}"
        elif event.kind is Kind.STEP_ENDED and event.status is not None:
            state = self._steps[event.step]
            took = f" after {duration(state.ended - state.started)}" if state.started else ""
            text = f"{step}: {event.status.value}{took}" + (f" ({event.text})" if event.text else "")
        self._print_text(event, text)

    def _print_training(self, event: Event) -> None:
        """Print the newest training line if it is due, and that of a step before the step's end."""
        new = self._unprinted
        is_due = event.at - self._last_line_at >= _LINE_EVERY_S if event.kind is Kind.LOG else True
        if new is None or not is_due or (event.kind is Kind.STEP_ENDED and new.step != event.step):
            return
        self._unprinted, self._last_line_at = None, event.at
        self._print_text(replace(new, at=event.at), f"{new.node}: {new.text}")

    def _print_text(self, event: Event, text: str) -> None:
        if self._is_json:
            self._print_json(event, text)
        elif text:
            stamp = time.strftime("%H:%M:%S", time.localtime(event.at))
            self._console.print(f"{stamp}  {text}", markup=False, soft_wrap=True)

    def _print_json(self, event: Event, text: str) -> None:
        """Print the line of an event, and the status of the run, which is otherwise only in the verdict."""
        if event.kind is Kind.CHECKS and event.status is not None:
            text = f"run {self._run}: {event.status.value}" + (f" ({event.text})" if event.text else "")
        if text:
            level = "info" if event.status in (None, Status.PASS, Status.NOT_RUN) else "warning"
            fields = {"run": self._run, "step": event.step, "node": event.node}
            print_json_line(text, level=level, at=event.at, status=event.status, **fields)


def _console() -> "Console":
    from rich.console import Console

    class Progress(Console):
        """Stops printing on a broken pipe; rich would also close stdout, which the verdict needs."""

        def on_broken_pipe(self) -> None:
            self.quiet = True

    return Progress(stderr=True, highlight=False)


def _elapsed(state: _StepState) -> str:
    if not state.started:
        return ""
    return duration((state.ended or time.time()) - state.started)


def _status_text(state: _StepState) -> "Text":
    from rich.text import Text

    from tipcflow.report.tables import status_text

    if state.status is None:
        return Text("running" if state.started else "")
    text = status_text(state.status).copy()
    if state.reason and state.status is not Status.PASS:
        text.append(f"  {state.reason.splitlines()[0][:300]}", style="dim")
    return text
