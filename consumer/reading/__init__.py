"""What a consumer reads: where it begins, what it fetches, decodes and hands out."""
