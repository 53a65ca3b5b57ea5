"""A consumer at work: its parts put together, its membership driven, partitions handed over, its end."""
