"""Alembic migrations, one linear chain.

Public: `downgrade`, `grants`.
"""
