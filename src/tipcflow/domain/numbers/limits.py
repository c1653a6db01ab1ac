"""Limits of time in messages."""

_S_BEFORE_MINUTES = 600
_DAY_S = 86400


def limit(seconds: float) -> str:
    """Return a configured limit or a rounded wait for a sentence: `90 s`, `20 min`, `3 days`."""
    if seconds < _S_BEFORE_MINUTES:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.0f} min" if seconds < 2 * _DAY_S else f"{seconds / _DAY_S:.0f} days"
