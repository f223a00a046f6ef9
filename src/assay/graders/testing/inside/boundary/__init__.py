"""The boundary between the judge, which runs the tests, and the host, which runs the solution."""
