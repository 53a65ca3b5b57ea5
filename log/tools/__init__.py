"""Looking into a data folder without changing it: ``verify`` reads everything, ``dump`` shows one file."""
