"""What a shell is offered after the Tab key."""


def capabilities(incomplete: str) -> list[str]:
    """The capabilities that begin with what was typed."""
    from toolkit.engine import Registry

    return [one.id for one in Registry.load().records() if one.id.startswith(incomplete)]


def providers(incomplete: str) -> list[str]:
    """The vendors whose id begins with what was typed."""
    from toolkit.engine import Registry

    return [name for name in Registry.load().vendors if name.startswith(incomplete)]
