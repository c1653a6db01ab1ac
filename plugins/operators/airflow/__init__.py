"""Old names; see the package."""
