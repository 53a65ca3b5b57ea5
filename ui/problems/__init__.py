"""The first page: what is wrong, in one cluster or in several."""
