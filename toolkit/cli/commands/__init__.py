"""Commands without a resource: serve, login, batch, demo, verify and the operator's own."""
