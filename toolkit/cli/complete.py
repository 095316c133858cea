"""What a shell is offered after the Tab key."""


def capabilities(incomplete: str) -> list[str]:
    """The capabilities that begin with what was typed."""
    from toolkit.engine import Registry

    return [one.id for one in Registry.load().records() if one.id.startswith(incomplete)]


def providers(incomplete: str) -> list[str]:
    """The vendors whose id begins with what was typed."""
    from toolkit.engine import Registry

    return [name for name in Registry.load().vendors if name.startswith(incomplete)]


def aims(incomplete: str) -> list[str]:
    """The aims that a router may favour and that begin with what was typed."""
    from toolkit.contract.jobs import Options

    named = Options.model_json_schema()["properties"]["optimize_for"]
    choices = [value for one in (named, *named.get("anyOf", ())) for value in one.get("enum", ())]
    return [str(each) for each in choices if str(each).startswith(incomplete)]


def profiles(incomplete: str) -> list[str]:
    """The profiles whose name begins with what was typed; no key is read for it."""
    from toolkit.profiles.files import profile_names

    return [name for name in profile_names() if name.startswith(incomplete)]
