"""Read-only tools for a data folder: ``verify`` reads everything, ``dump`` shows one file."""
