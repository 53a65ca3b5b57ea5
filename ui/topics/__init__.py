"""Pages of topics: sizes, rates, readers, and what is wrong."""
