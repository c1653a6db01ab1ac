"""Training of a sparse embedding with parameter servers."""
