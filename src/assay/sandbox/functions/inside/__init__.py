"""What runs inside the sandbox of a function worker: standard library only, and as little of it."""
