"""Plans as tables and differences."""
