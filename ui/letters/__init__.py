"""Pages of dead letters, and their replay: planned, confirmed, executed once."""
