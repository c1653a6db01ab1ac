"""Large logs in bounded memory: columns of numbers instead of one object per number."""
