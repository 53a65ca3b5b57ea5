"""``kohort topics``, and the requests about topics that other commands send, too."""
