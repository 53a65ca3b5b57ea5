"""The coordinators' engine: shards, their writes, timers, loads and events, whatever is coordinated."""
