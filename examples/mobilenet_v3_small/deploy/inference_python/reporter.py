"""Who reports: the real `auto_log` package where it is installed, else this suite's own report."""

import argparse
import logging
import os
import sys
from importlib import metadata, util
from typing import Protocol

from autolog import Report
from engine import Engine
from mobilenet.arguments import MODELS

WARM_UP = 2


class Reporter(Protocol):
    """What the measuring loop calls, once before a call and after each of its three stages."""

    name: str

    def start(self) -> None:
        """A call begins."""

    def stamp(self) -> None:
        """A stage of the call ends."""

    def report(self) -> None:
        """Prints the report. The real one ends the process with 0: nothing may come after it."""


class OwnReporter:
    """The suite's own report."""

    name = "tipcflow-sample"

    def __init__(self, engine: Engine, args: argparse.Namespace) -> None:
        precision = str(engine.settings["precision"])
        self._report = Report(
            model=MODELS[0], precision=precision, batch_size=args.batch_size, config=engine.config, warm_up=WARM_UP
        )
        self.start, self.stamp, self.report = self._report.start, self._report.stamp, self._report.print


class AutoLogReporter:
    """The `auto_log` package."""

    def __init__(self, engine: Engine, args: argparse.Namespace) -> None:
        import auto_log

        self.name = f"auto_log {_version()}"
        self._stage = 0
        self._logger = auto_log.AutoLogger(
            model_name=MODELS[0],
            model_precision=str(engine.settings["precision"]),
            batch_size=args.batch_size,
            data_shape="dynamic",
            save_path=None,
            inference_config=engine.config,
            pids=os.getpid(),
            process_name=None,
            gpu_ids=0 if args.use_gpu else None,
            time_keys=["preprocess_time", "inference_time", "postprocess_time"],
            warmup=WARM_UP,
            logger=_logger(),
        )

    def start(self) -> None:
        """A call begins."""
        self._stage = 0
        self._logger.times.start()

    def stamp(self) -> None:
        """A stage of the call ends."""
        self._stage += 1
        if self._stage < 3:
            self._logger.times.stamp()
        else:
            self._logger.times.end(stamp=True)

    def report(self) -> None:
        """Prints the report and ends the process."""
        self._logger.report()


def _logger() -> logging.Logger:
    """A logger called root as AutoLog's own is, otherwise Paddle prints every line twice."""
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(
        logging.Formatter("[%(asctime)s] %(name)s %(levelname)s: %(message)s", datefmt="%Y/%m/%d %H:%M:%S")
    )
    logger = logging.Logger("root", logging.DEBUG)
    logger.addHandler(handler)
    return logger


def _version() -> str:
    try:
        return metadata.version("auto_log")
    except metadata.PackageNotFoundError:
        return "unknown"


def make_reporter(engine: Engine, args: argparse.Namespace) -> Reporter:
    """The reporter for this process."""
    if util.find_spec("auto_log") is not None:
        return AutoLogReporter(engine, args)
    return OwnReporter(engine, args)
