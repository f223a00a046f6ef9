"""Tests in C whose judge shares no process with the submission: headers, wire, builds and runs."""
