"""Thin services over the store: artifacts, connections, events, usage and billing."""
