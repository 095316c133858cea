"""The wire format that both clients share, without any sending."""
