"""Which records are done, and the commits that follow from it."""
