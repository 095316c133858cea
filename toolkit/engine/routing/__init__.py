"""The choice of a provider: registry, router, health, connection gates and estimates."""
