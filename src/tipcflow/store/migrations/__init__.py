"""Alembic migrations, one linear chain.

Public: nothing.
"""
