"""Series of samples: packed, summarised, rolled up."""
