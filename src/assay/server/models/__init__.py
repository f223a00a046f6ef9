"""The bodies of requests and replies, as the OpenAPI document shows them."""
