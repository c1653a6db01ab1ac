"""The pages of all chains, and the same as JSON and CSV.

Public: `alerts`, `audit`, `builds`, `chains`, `decisions`, `fleet`, `pulls`, `scaling`, `versions`.
"""
