"""Stored facts -> verdict: context, checks, confirm runs, re-evaluation."""
