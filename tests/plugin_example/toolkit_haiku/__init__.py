"""A capability that writes haiku, and a vendor for it."""
