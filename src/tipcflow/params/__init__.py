"""Parser of params files: text -> typed params. Line maps and dialects are data (see docs/architecture.md)."""

from tipcflow.params.dialect import Dialect, known_dialects, load_dialect
from tipcflow.params.file import ParamsFile, Slot
from tipcflow.params.parse import parse_params, read_params

__all__ = ["Dialect", "ParamsFile", "Slot", "known_dialects", "load_dialect", "parse_params", "read_params"]
