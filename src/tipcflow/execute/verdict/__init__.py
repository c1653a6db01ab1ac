"""Stored facts -> verdict: check context, checks, confirmation runs, re-evaluation."""
