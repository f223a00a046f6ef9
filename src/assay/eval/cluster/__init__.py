"""The same work on a Ray cluster: cells, shards, and the versions of a server."""
