"""Partitions on this broker: their logs and disk, leadership, flushing, compaction, names and configs."""
