"""``--profile`` and ``kohort profiles``: the connections of several clusters in one file."""
