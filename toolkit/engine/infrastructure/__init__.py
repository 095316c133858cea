"""GPU infrastructure at a cloud: pods, endpoints, volumes, templates and their upkeep."""
