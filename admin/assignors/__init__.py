"""``kohort assignors``: the workbench, where assignors are tried on a group."""
