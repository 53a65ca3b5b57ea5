"""Pages of records: browsing, searching, one record, and export."""
