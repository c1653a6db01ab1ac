"""Parser of params files: text -> typed params. Line maps and dialects are data (see docs/architecture.md).

Public: `__all__`, `blocks`, `file`, `kinds`, `layout`, `limits`, `lines`, `modes`, `sections`, `shell`, `specs`,
`values`.
"""

from tipcflow.params.dialect import Dialect
from tipcflow.params.file import ParamsFile, Slot
from tipcflow.params.parse import parse_params, read_params
from tipcflow.params.registry.names import known_dialects, load_dialect

__all__ = ["Dialect", "ParamsFile", "Slot", "known_dialects", "load_dialect", "parse_params", "read_params"]
