"""Classic groups: members join, the leader assigns, all sync."""
