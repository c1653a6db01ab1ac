"""Masking of secrets in text from logs, errors and URLs, before the text is stored, sent or shown.

Log files are stored unmasked, because the certificate contains their hashes, and masked when they are read.

Public: `__all__`.
"""

from tipcflow.domain.masking.lines import LineMask
from tipcflow.domain.masking.text import Masked, MaskedByKey, MaskedTexts, MaskedValues, mask, mask_values

__all__ = ["LineMask", "Masked", "MaskedByKey", "MaskedTexts", "MaskedValues", "mask", "mask_values"]
