"""Profiles: an address under a name, and a pointer to its key, for clients and commands.

`files` stores the profiles, and `keyring_store` stores their keys if the system has a keyring.
`resolution` decides which address and which key a client uses.
"""
