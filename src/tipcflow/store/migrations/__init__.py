"""Alembic migrations, one linear chain."""
