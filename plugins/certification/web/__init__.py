"""HTML, static files, access checks and error pages."""
