"""What helps to type commands: completion for shells, and examples in help texts."""
