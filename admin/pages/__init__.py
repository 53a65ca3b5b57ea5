"""Pages of groups as HTML, for ``--html`` of commands and for ``kohort ui``: lanes of partitions, and trials
of assignors; put together of pieces whose text is escaped (``markup``), with one script and one style.
"""
