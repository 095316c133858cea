"""Commands that are no resource's: serve, login, batch, demo, verify and the operator's own."""
