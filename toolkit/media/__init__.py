"""Pictures and sounds identified by their bytes: media types, sizes in pixels, playing times.

The type that a sender declares is never trusted. Any layer may use this package, because it
imports nothing else of the toolkit.
"""
