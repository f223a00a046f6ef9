"""Tell functions that do something from stubs, in several languages."""
