"""Profiles: an address under a name, and a pointer to its key, for clients and commands.

`files` stores them, `keyring_store` stores their keys where the system has a keyring, and
`resolution` decides which address and which key a client uses.
"""
