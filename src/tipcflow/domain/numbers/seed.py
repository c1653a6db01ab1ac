"""The seeds of a training: those that NumPy and Paddle accept, 0 <= seed < 2**32."""

SMALLEST_SEED, LARGEST_SEED = 0, 2**32 - 1
