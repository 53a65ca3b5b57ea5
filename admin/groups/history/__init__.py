"""Past generations and epochs of a group, from the coordinator's events or from the group's records."""
