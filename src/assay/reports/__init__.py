"""Reports: a run as numbers, a verdict, a table, JSON, JUnit and one HTML file."""
