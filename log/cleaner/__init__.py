"""Compaction (``cleanup.policy=compact``): the newest record of each key stays, at its offset.

``Cleaning`` is one compaction, in stages. ``_plan`` says what of a log can be compacted, ``_keys`` finds the
newest offset of each key, ``_filter`` and ``_batch`` leave the others out, ``_swap`` puts a new segment in
place of old ones.
"""
