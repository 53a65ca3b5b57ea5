"""Share partitions of the partitions that this broker leads (KIP-932): loaded, read, stored, given up."""
