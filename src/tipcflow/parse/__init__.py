"""Log parsers: text and samples to measurements; pure and streaming, one module per format.

No function here opens a file: callers pass text, or lines with their byte offsets (`lines_of`). A line that no
format recognizes is skipped and is not an error; invalid bytes become U+FFFD; nan and inf are values.

Public: `__all__`, `text`.
"""

from tipcflow.parse.failures.excerpt import error_excerpt
from tipcflow.parse.failures.launch import LaunchFailure, parse_launch
from tipcflow.parse.metrics import METRICS, Metric, metric
from tipcflow.parse.reports.autolog import AutologBlock, parse_autolog
from tipcflow.parse.reports.engine import ENGINE_KEYS, engine_from_autolog, parse_engine
from tipcflow.parse.reports.inference import InferenceLog, parse_inference, read_inference
from tipcflow.parse.reports.predictions import parse_predictions, read_predictions
from tipcflow.parse.reports.rank import parse_ranks
from tipcflow.parse.reports.resources import ResourceSample, parse_resources, peak_measurements, probe_measurements
from tipcflow.parse.reports.stored_results import RESULT_PRECISIONS, parse_stored_results, precision_of_results
from tipcflow.parse.sample import Sample, to_measurements
from tipcflow.parse.text import lines_of, strip_ansi
from tipcflow.parse.training.formats import FORMATS, line_format
from tipcflow.parse.training.training import last_training_line, parse_training

__all__ = [
    "ENGINE_KEYS",
    "FORMATS",
    "METRICS",
    "RESULT_PRECISIONS",
    "AutologBlock",
    "InferenceLog",
    "LaunchFailure",
    "Metric",
    "ResourceSample",
    "Sample",
    "engine_from_autolog",
    "error_excerpt",
    "last_training_line",
    "line_format",
    "lines_of",
    "metric",
    "parse_autolog",
    "parse_engine",
    "parse_inference",
    "parse_launch",
    "parse_predictions",
    "parse_ranks",
    "parse_resources",
    "parse_stored_results",
    "parse_training",
    "peak_measurements",
    "precision_of_results",
    "probe_measurements",
    "read_inference",
    "read_predictions",
    "strip_ansi",
    "to_measurements",
]
