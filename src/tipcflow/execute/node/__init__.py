"""One node: sessions, file transfer, environment, health, containers, preflight.

Public: `health`, `in_use`, `preflight`, `session`.
"""
