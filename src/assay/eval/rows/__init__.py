"""Rows of a dataset: read, cut into shards, graded, and kept by one of two sinks."""
