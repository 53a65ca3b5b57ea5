"""The coordinators' engine: shards with their writes, timers, loads and events, whatever they coordinate."""
