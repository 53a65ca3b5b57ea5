"""Offsets stored with the results: in the user's database, or in Kafka with handlers' results."""
