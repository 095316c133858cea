"""Pictures and sounds told by their bytes: media types, sizes in pixels and playing times.

What a sender calls them is never believed. It imports nothing of ours, so every floor may use it.
"""
