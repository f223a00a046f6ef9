"""The wire forms of being an endpoint: a body to items, outcomes to a reply; no HTTP here."""
