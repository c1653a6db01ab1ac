"""tipcflow certifies deep-learning model chains on real clusters."""
