"""``kohort groups`` and :class:`~kohort.admin.GroupAdmin`: groups of any cluster, their lag and offsets."""
