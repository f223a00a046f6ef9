"""Other systems' formats, read and written."""
