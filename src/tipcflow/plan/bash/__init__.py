"""Plans that equal what the bash scripts of a suite run."""
