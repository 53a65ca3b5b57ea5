"""Compaction (``cleanup.policy=compact``): the newest record of each key stays, at its offset.

``Cleaning`` is one compaction, in stages. ``_plan`` chooses the part of a log to compact, ``_keys`` finds the
newest offset of each key, ``_filter`` and ``_batch`` drop the other records, ``_swap`` puts a new segment in
place of old ones.
"""
