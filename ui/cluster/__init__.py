"""The page of a cluster: its brokers, and partitions that lack replicas or are being reassigned."""
