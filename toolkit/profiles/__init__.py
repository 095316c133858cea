"""Profiles: an address under a name, and a pointer to its key; clients and commands share them.

`files` keeps them, `keyring_store` keeps their keys where the system has a keyring, and
`resolution` decides which address and which key a client uses.
"""
