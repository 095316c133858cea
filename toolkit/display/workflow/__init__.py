"""A workflow's graph and its timeline: layout, boxes, SVG and mermaid text."""
