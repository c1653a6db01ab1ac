"""HTML, static files, access checks and error pages.

Public: `access`, `assets`, `days`, `errors`, `render`, `texts`, `trigger`.
"""
