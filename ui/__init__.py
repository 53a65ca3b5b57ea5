"""``kohort ui``: a page for any cluster of Kafka's protocol.

It needs the extra ``ui`` (Starlette and uvicorn); nothing here is imported before the command runs.
"""
