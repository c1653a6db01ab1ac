"""What a log says about why its program ended."""
