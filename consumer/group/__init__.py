"""A consumer's place in its group: a member of either protocol, of a registry, or of none."""
