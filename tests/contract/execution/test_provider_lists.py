"""Lists of the providers that may serve work: `options.provider` as an object."""

import pytest

from tests.contract.raw_http import UNKNOWN_ULID, RawCaller, build_run_body
from toolkit import Client, ErrorCode, RequestError, Workflow
from toolkit.sandbox import Faults

LINE = {"objective": "A line about tea"}
HAIKU, OPUS = "anthropic/claude-haiku-5-5", "anthropic/claude-opus-5-5"


def test_only_keeps_the_fallback_between_its_members(client: Client, faults: Faults) -> None:
    """Given a listed provider that is down, then the other listed provider serves the run."""
    faults.fail("google", status=401)
    run = client.runs.create("llm.generate", LINE, only=["google", "openai"]).wait(progress=False)
    assert [attempt.provider for attempt in run.attempts][-1] == run.provider == "openai"
    assert {attempt.provider for attempt in run.attempts} <= {"google", "openai"}
    assert run.record.options.model_dump(exclude_defaults=True)["provider"] == {
        "only": ("google", "openai")
    }
    faults.fail("openai", status=401)
    run = client.runs.create("llm.generate", LINE, only=["google", "openai"])
    assert run.wait(progress=False, check=False).status == "failed"
    assert {attempt.provider for attempt in run.attempts} == {"google", "openai"}


@pytest.mark.embedded
def test_a_list_names_models_and_connections(client: Client) -> None:
    """Given models and connections in lists, then they alone are called, or not called."""
    route = client.route("llm.generate", LINE, only=[OPUS, HAIKU], ignore=HAIKU)
    assert (route.provider, route.model) == ("anthropic", "claude-opus-5-5")
    unknown = client.runs.create("llm.generate", LINE, only="anthropic/claude-next")
    assert unknown.wait(progress=False, check=False).attempts[0].model == "claude-next"
    old, new = (
        client.connections.create("anthropic", "environment", "ANTHROPIC_API_KEY").id
        for _ in range(2)
    )
    for options, id in (({"only": [f"{old}/claude-haiku-5-5"]}, old), ({"ignore": [old]}, new)):
        route = client.route("llm.generate", LINE, **{"only": ["anthropic"], **options})
        assert (route.record.connection_id, route.model) == (id, "claude-haiku-5-5")


@pytest.mark.embedded
def test_a_route_explains_each_exclusion_by_a_list(client: Client) -> None:
    """Given lists, then each candidate that they exclude says which list did, for any policy."""
    for policy in (None, "cost"):
        route = client.route(
            "llm.generate", LINE, only=["openai", "google"], ignore="openai", optimize_for=policy
        )
        reasons = {c.provider: c.reason for c in route.candidates if not c.allowed}
        assert reasons["openai"] == "excluded by `ignore`"
        assert reasons["anthropic"] == "not in `only`"
        assert (route.provider, route.record.policy) == ("google", policy or "default")


@pytest.mark.parametrize(
    ("lists", "code", "match"),
    [
        ({"only": ["opnai"]}, "PROVIDER_NOT_ALLOWED", "Did you mean `openai`"),
        ({"ignore": ["antropic"]}, "PROVIDER_NOT_ALLOWED", "Did you mean `anthropic`"),
        ({"ignore": ["anthropic/claude-haiku-55"]}, "PROVIDER_NOT_ALLOWED", f"`{HAIKU}`"),
        ({"only": [f"prv_{UNKNOWN_ULID}/x"]}, "NOT_FOUND", "no connection"),
        ({"only": ["elevenlabs"]}, "PROVIDER_NOT_ALLOWED", "Allowed: openai"),
        ({"only": ["openai"], "ignore": ["openai"]}, "PROVIDER_NOT_ALLOWED", "leave no provider"),
        ({"only": []}, "INVALID_REQUEST", "at least 1"),
        ({"onli": ["openai"]}, "INVALID_REQUEST", "onli"),
    ],
)
def test_rejects_lists_that_nothing_can_serve(
    client: Client, lists: dict[str, list[str]], code: str, match: str
) -> None:
    """Given unknown names, or lists that leave nothing, then runs and routes are refused."""
    options: dict[str, object] = {"provider": lists}
    for call in (client.runs.create, client.route):
        with pytest.raises(RequestError, match=match) as error:
            call("llm.generate", LINE, **options)
        assert error.value.code.name == code
    assert len(client.runs.list()) == 0


@pytest.mark.embedded
def test_names_the_listed_providers_to_connect(bare: Client) -> None:
    """Given no connection that a list leaves, then the refusal names the providers of the list."""
    bare.connections.create("openai", "environment", "OPENAI_API_KEY")
    with pytest.raises(RequestError, match=r"register one of anthropic, google\.") as error:
        bare.runs.create("llm.generate", LINE, only=["google", HAIKU])
    assert error.value.code is ErrorCode.CREDENTIALS_MISSING
    picture = {"messages": [{"role": "user", "content": "See"}], "images": ["art_" + UNKNOWN_ULID]}
    bare.connections.create("cohere", "environment", "COHERE_API_KEY")
    with pytest.raises(RequestError, match=r"images: connect one of google\.") as error:
        bare.runs.create("llm.generate", picture, only=["google", "cohere"])
    assert error.value.code is ErrorCode.CREDENTIALS_MISSING
    with pytest.raises(
        RequestError, match=r"leave no model with images\. Allowed: openai"
    ) as error:
        bare.runs.create("llm.generate", picture, only=["cohere"])
    assert error.value.code is ErrorCode.PROVIDER_NOT_ALLOWED


@pytest.mark.embedded
def test_a_workflow_gives_its_lists_to_nodes_that_call_providers(client: Client) -> None:
    """Given lists on a workflow, then nodes of this machine run, and a node's pin wins."""
    wf = Workflow("lists", ignore=["minimax"], max_retries=1)
    card = wf.add("card", "composition.layout", title="Tea")
    wf.add("listed", "llm.generate", input=LINE, depends_on=[card])
    wf.add("only", "llm.generate", input=LINE, options={"only": ["google"]})
    wf.add("pinned", "llm.generate", input=LINE, options={"provider": "minimax"})
    nodes = client.workflows.submit(wf).wait(progress=False).nodes
    providers = {node.id: node.provider for node in nodes}
    assert providers["listed"] not in (None, "minimax")
    assert (providers["only"], providers["pinned"]) == ("google", "minimax")
    assert Workflow.from_dict(wf.to_dict()).to_dict() == wf.to_dict()


@pytest.mark.embedded
def test_a_pin_and_lists_contradict_each_other(client: Client) -> None:
    """Given a pin and a list in one call, then the call fails before any request."""
    wf = Workflow("both", provider="openai")
    for call in (
        lambda: client.runs.create("llm.generate", LINE, provider="openai", only="openai"),
        lambda: client.map(
            "llm.generate",
            ["tea"],
            objective="{text}",
            options={"provider": "openai", "ignore": "aws"},
        ),
        lambda: wf.add("a", "llm.generate", options={"provider": "openai", "ignore": "aws"}),
    ):
        with pytest.raises(TypeError, match="`provider` both choose"):
            call()


@pytest.mark.embedded
def test_other_members_of_a_request_name_no_provider(client: Client, caller: RawCaller) -> None:
    """Given a member `model` or `only` of the options, then the request is refused."""
    for member in ("only", "ignore", "model"):
        body = build_run_body("llm.generate", dict(LINE), options={member: ["openai"]})
        refusal = caller.send("POST", "/v1/runs", body)
        assert refusal.status_code == 400
        assert refusal.json()["error"]["details"][0]["path"] == f"options.{member}"
