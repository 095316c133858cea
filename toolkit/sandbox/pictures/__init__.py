"""Pictures drawn by rule: canvas, palette, scenery and scenes."""
