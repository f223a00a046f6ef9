"""Running tests: hidden files, runners, and the outcomes of single tests."""
