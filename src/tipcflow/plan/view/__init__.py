"""Plan views: tables and differences."""
