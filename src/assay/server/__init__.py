"""The server: REST over the registry and the store, with keys, roles, jobs and live events."""
