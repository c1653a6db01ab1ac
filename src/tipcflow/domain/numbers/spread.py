"""Spread of repeated measurements."""

# Median absolute deviation -> standard deviation of normal noise.
MAD_TO_SIGMA = 1.4826
