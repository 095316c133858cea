"""Haiku for the capability toolkit, and a vendor who writes them."""
