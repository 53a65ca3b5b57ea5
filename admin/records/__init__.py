"""Records of topics: ``kohort produce``, ``kohort consume`` and ``kohort deadletters``."""
