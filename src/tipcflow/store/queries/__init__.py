"""Reading for pages, history and baselines."""
