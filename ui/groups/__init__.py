"""Pages of groups: the list, a group now and at another time, and changes of a group."""
