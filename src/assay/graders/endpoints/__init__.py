"""Calling graders that live behind an HTTP endpoint: guard, signatures, transport, wire forms."""
