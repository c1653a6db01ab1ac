"""Facts and verdicts as a person or a machine reads them: pure text and JSON."""

from tipcflow.report.certificate import as_text, certificate
from tipcflow.report.verify import verify

__all__ = ["as_text", "certificate", "verify"]
