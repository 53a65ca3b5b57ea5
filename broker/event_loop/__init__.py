"""The event loop of a broker's process: how long work holds it, and what cuts long work into slices."""
