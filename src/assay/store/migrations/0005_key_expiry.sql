-- Until when an API key is good; empty for ever.

ALTER TABLE api_key ADD COLUMN expires_at TEXT NOT NULL DEFAULT '';
