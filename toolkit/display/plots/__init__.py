"""Figures drawn by matplotlib, which is slow to import: only for drawing."""
