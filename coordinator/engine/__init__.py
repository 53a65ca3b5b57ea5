"""The engine of all coordinators: shards with their writes, timers, loads and events."""
