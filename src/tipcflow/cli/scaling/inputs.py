"""Inputs of `tipcflow scaling`: files, or run IDs if no such file exists."""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from tipcflow.cli.parse.inputs import STDIN, pieces_of, rank_of
from tipcflow.domain import ConfigError
from tipcflow.parse.scaling.printed_speeds import PrintedSpeeds
from tipcflow.parse.scaling.scaling import Speed, named, topology_in
from tipcflow.parse.scaling.speeds import PRINTED, Window, counting, speed_of, steps_in
from tipcflow.parse.text import last_state, strip_ansi
from tipcflow.parse.training.stream import numbered_lines

# File names that are searched in folders.
_LOG = re.compile(r"(?:\.(?:log|txt|out|json)|^workerlog\.\d+)(?:\.gz)?$")
# Quoted characters of a line.
_SHOWN = 100


class Inputs:
    """Collects speeds from files and runs.

    Attributes:
        speeds: in the order of the inputs.
        notes: messages about skipped inputs.
    """

    def __init__(self, *, rule: str, batch: int, window: Window) -> None:
        self.speeds: list[Speed] = []
        self.notes: list[str] = []
        self._rule, self._batch, self._window = rule, batch, window

    def read(self, name: str) -> None:
        """Read one input: a file, a folder (recursively), or a run.

        Raises:
            ConfigError: the input is none of these, is unreadable, or has no speed or topology.
        """
        if name != STDIN and Path(name).is_dir():
            self._folder(name)
        elif name == STDIN or Path(name).exists() or _is_path(name):
            self._file(name)
        else:
            from tipcflow.execute.scaling.speeds import runs_of
            from tipcflow.store import Store

            with Store.open() as store:
                runs = runs_of(store, name)
            for run in runs:
                try:
                    self._run(run)
                except ConfigError as error:
                    if len(runs) == 1:
                        raise
                    self.notes.append(error.message)

    def _run(self, name: str) -> None:
        from tipcflow.execute.scaling.speeds import run_speeds
        from tipcflow.store import Store

        with Store.open() as store:
            of_run = run_speeds(store, name, rule=self._rule, batch=self._batch, window=self._window)
        self.notes += of_run.notes
        given = {speed.source for speed in self.speeds}
        for speed in of_run.speeds:
            # Runs are repeats of each other; a run given twice counts once.
            if speed.source not in given:
                self.speeds.append(self._next(speed) if self._is_known(speed) else speed)

    def _folder(self, name: str) -> None:
        """Read the logs in a folder, except those that are not training logs or have no topology."""
        logs = sorted(
            str(Path(folder) / file) for folder, _, files in os.walk(name) for file in files if _is_log(file)
        )
        before = len(self.speeds)
        left_out: list[str] = []
        for log in logs:
            try:
                self._file(log)
            except ConfigError as error:
                left_out.append(str(error))
        if len(self.speeds) == before:
            raise ConfigError(
                f"is a folder without a log that has both speed and topology ({len(logs)} logs)",
                file=name,
                expected=left_out[0] if left_out else "logs like 4n8g/r50_b128_fp32_1.log",
            )
        if left_out:
            more = f" (and {len(left_out) - 1} more logs)" if len(left_out) > 1 else ""
            self.notes.append(f"left out: {left_out[0]}{more}")

    def _file(self, name: str) -> None:
        results = PrintedSpeeds()
        steps = list(counting(steps_in(_watched(_lines(name), results)), self._window))
        self.notes += _not_understood(name, results.unparsed)
        if results.speeds:
            if self._rule != PRINTED:
                raise ConfigError(
                    "contains results but no times",
                    file=name,
                    key="--rule",
                    found=self._rule,
                    expected="training logs",
                )
            for speed in results.speeds:
                self.speeds.append(speed if speed.repeat else self._next(speed))
            return
        topology = topology_in(name)
        if topology is None:
            what = "nodes and devices, like 4n8g"
            raise ConfigError(
                "contains no results and has no topology in its path"
                if not steps
                else "has no topology in its path",
                file=name,
                expected=f"{what}, in the path"
                if steps
                else f"results, or a training log with {what} in its path",
            )
        if rank_of(name) > 0:
            self.notes.append(f"{name}: skipped, only the log of rank 0 is read")
            return
        measurement = speed_of(
            steps, rule=self._rule, batch=self._batch, devices=topology.devices, window=self._window, source=name
        )
        if measurement.not_finite:
            self.notes.append(f"{name}: {measurement.not_finite} lines with nan or inf excluded from the mean")
        model, precision, batch, repeat = named(name)
        speed = Speed(
            model=model, precision=precision, topology=topology, repeat=repeat, speed=measurement.speed,
            batch=batch, source=name, how=measurement.how, iterations=measurement.iterations,
        )  # fmt: skip
        self.speeds.append(speed if repeat and not self._is_known(speed) else self._next(speed))

    def _is_known(self, speed: Speed) -> bool:
        return any(
            _series(old) == _series(speed) and old.repeat == speed.repeat and old.source != speed.source
            for old in self.speeds
        )

    def _next(self, speed: Speed) -> Speed:
        """A copy with the next free repeat number."""
        taken = [old.repeat for old in self.speeds if _series(old) == _series(speed)]
        return speed.model_copy(update={"repeat": max(taken, default=0) + 1})


def _series(speed: Speed) -> tuple[object, ...]:
    """The key that repeats of one training share."""
    return (speed.model, speed.precision, speed.batch, speed.topology)


def _is_path(name: str) -> bool:
    """Whether an input is meant as a file: run IDs have no folder and no suffix."""
    return "/" in name or Path(name).suffix in (".log", ".txt", ".gz", ".json", ".out", ".md")


def _is_log(file: str) -> bool:
    """Whether a file of a folder is read; of a training's ranks, only rank 0 is."""
    return _LOG.search(file) is not None and rank_of(file) <= 0


def _lines(name: str) -> Iterator[tuple[int, str]]:
    for offset, raw in numbered_lines(pieces_of(name)):
        yield offset, strip_ansi(last_state(raw).decode("utf-8", "replace"))


def _watched(lines: Iterable[tuple[int, str]], results: PrintedSpeeds) -> Iterator[tuple[int, str]]:
    """Yield the lines and collect the results among them."""
    for offset, line in lines:
        results.line(offset, line)
        yield offset, line


def _not_understood(name: str, unparsed: list[str]) -> list[str]:
    if not unparsed:
        return []
    more = f" (and {len(unparsed) - 1} more such lines)" if len(unparsed) > 1 else ""
    return [f"{name}: cannot parse a line that looks like a result: {unparsed[0][:_SHOWN]}{more}"]
