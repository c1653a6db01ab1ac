"""One node: sessions, file transfer, environment, health, containers, preflight.

Public: `builds`, `health`, `preflight`, `session`.
"""
