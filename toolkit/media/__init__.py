"""Pictures and sounds identified by their bytes: media types, sizes in pixels, playing times.

A declared type is never trusted. Any layer may use this package: it imports nothing of ours.
"""
