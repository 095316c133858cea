"""Conversations with tools and pictures, on every simulated vendor that offers them."""

import io
from datetime import date
from decimal import Decimal
from typing import Annotated

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from pydantic import AfterValidator

from toolkit import AsyncClient, Client, WorkError, Workflow
from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.sandbox import Faults

pytestmark = pytest.mark.embedded
VENDORS = ("openai", "anthropic", "google", "minimax", "aws")
QUESTION = "What is the weather in Rome for 3 days?"


def get_weather(city: str, days: int = 1) -> str:
    """Return the weather forecast of a city.

    Args:
        city: name of the city.
        days: number of days.
    """
    return f"Sun in {city}, {days} days."


def check_city(city: str) -> str:
    """Accept cities of Norway, which a schema cannot say."""
    if city not in ("Bergen", "Oslo"):
        raise ValueError("name a city of Norway")
    return city


def make_picture(color: tuple[int, int, int], size: tuple[int, int] = (64, 48)) -> bytes:
    """Make a picture of one colour."""
    stored = io.BytesIO()
    Image.new("RGB", size, color).save(stored, "PNG")
    return stored.getvalue()


@pytest.mark.parametrize("provider", VENDORS)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_model_asks_for_a_tool(client: Client, provider: str, stream: bool) -> None:
    """Given a function as a tool, when the words fit it, then the run asks for it with types."""
    fields = {"objective": QUESTION, "tools": [get_weather]}
    run = client.runs.create("llm.generate", fields, provider=provider, stream=stream)
    run.wait(progress=False)
    (call,) = run.tool_calls
    assert run.record.output is not None
    assert run.record.output["finish_reason"] == "tool_calls"
    assert (call.name, call.arguments) == ("get_weather", {"city": "Rome", "days": 3})
    assert call() == "Sun in Rome, 3 days."


@pytest.mark.parametrize("provider", VENDORS)
def test_functions_answer_within_a_turn(client: Client, provider: str) -> None:
    """Given max_turns, when a model asks for a function, then its result leads to the answer."""
    chat = client.conversation(tools=[get_weather], max_turns=3, provider=provider)
    answer = chat.send(QUESTION)
    assert answer.text == "Sun in Rome, 3 days."
    assert [run.status for run in chat.runs] == ["completed"] * 2
    assert [message["role"] for message in chat.messages] == [
        "user",
        "assistant",
        "tool",
        "assistant",
    ]


def test_a_new_kernel_continues_a_conversation(client: Client) -> None:
    """Given a named conversation, when another client opens it, then the history is there."""
    client.conversation("tides", system="Be brief.").send("A line on tides")
    again = client.conversation("tides")
    run = again.send("And on mills?")
    assert [message["role"] for message in again.messages] == ["user", "assistant"] * 2
    assert run.record.input["system"] == "Be brief."
    assert run.record.tags == ["conversation:tides"]


def test_a_failed_turn_stays_out_of_the_history(client: Client, faults: Faults) -> None:
    """Given a turn that fails, when the next one is sent, then the history lacks the failed one."""
    chat = client.conversation(provider="openai")
    faults.fail("openai", status=400, times=1)
    with pytest.raises(WorkError):
        chat.send("This fails")
    chat.send("A line on tides")
    assert chat.messages[0]["content"] == "A line on tides"


@pytest.mark.parametrize("provider", VENDORS)
def test_a_refusal_names_its_provider(client: Client, faults: Faults, provider: str) -> None:
    """Given a provider that refuses a request, then the message names it, and not its key."""
    faults.fail(provider, status=400, times=1)
    run = client.runs.create("llm.generate", {"objective": "Tides"}, provider=provider)
    run.wait(progress=False, check=False)
    assert run.error.message.startswith(f"{provider} answered (400)")


def test_an_error_of_a_function_is_an_answer(client: Client) -> None:
    """Given a function that raises, when the model asks for it, then it reads the error."""

    def look_up(word: str) -> str:
        """Look up a word."""
        raise LookupError(f"{word} is unknown")

    chat = client.conversation(tools=[look_up], max_turns=2, provider="openai")
    assert chat.send('Look up the word "tide"').text == "LookupError: tide is unknown"


def test_wrong_arguments_are_answered_to_the_model(client: Client) -> None:
    """Given arguments that do not fit the function, then the model reads why, and goes on."""

    def forecast(city: Annotated[str, AfterValidator(check_city)]) -> str:
        """Return the weather forecast of a city."""
        return f"Sun in {city}."

    chat = client.conversation(tools=[forecast], max_turns=2, provider="openai")
    assert "wrongly: city" in chat.send("What is the forecast for the city Rome?").text
    (call,) = chat.runs[0].tool_calls
    assert "a city of Norway" in call.fault
    with pytest.raises(WorkError, match="wrongly"):
        call()


@pytest.mark.parametrize(
    ("result", "spelled"),
    [
        (date(2026, 11, 29), '"2026-11-29"'),
        (np.arange(3), "[0, 1, 2]"),
        (pd.Series([1.5, 2.5]), "[1.5, 2.5]"),
        (pd.DataFrame({"a": [1]}), '"   a\\n0  1"'),
        ({"a": Decimal("1.5"), (1, 2): None}, '{"a": "1.5", "1,2": null}'),
    ],
)
def test_results_of_any_type_become_json(client: Client, result: object, spelled: str) -> None:
    """Given a function with a result that is no text, then the model reads it as JSON."""

    def measure(city: str) -> object:
        """Measure the tides of a city."""
        return result

    chat = client.conversation(tools=[measure], max_turns=2, provider="openai")
    chat.send("Measure the tides of the city Rome")
    assert chat.messages[2]["content"] == spelled


def test_answers_of_functions_outlive_a_failure(client: Client, faults: Faults) -> None:
    """Given a run that fails after a function answered, then the next message goes on from it."""
    asked: list[str] = []

    def get_tide(city: str) -> str:
        """Return the tide of a city."""
        asked.append(city)
        faults.fail("openai", status=400, times=1)
        return "high"

    chat = client.conversation(tools=[get_tide], max_turns=2, provider="openai")
    with pytest.raises(WorkError):
        chat.send("What is the tide of the city Rome?")
    chat.send("Please go on")
    roles = [message["role"] for message in chat.messages]
    assert roles == ["user", "assistant", "tool", "user", "assistant"]
    assert asked == ["Rome"]


def test_a_tool_in_openais_form(client: Client) -> None:
    """Given a description in the form of OpenAI's API, then it is taken."""
    inner = {"name": "weather", "description": "the weather", "parameters": {"type": "object"}}
    chat = client.conversation(tools=[{"type": "function", "function": inner}])
    chat.send("What is the weather?")
    assert [call.name for call in chat.tool_calls] == ["weather"]
    with pytest.raises(RequestError, match="asks for `weather`"):
        chat.send("Well?")


def test_an_async_function_needs_an_async_client(client: Client) -> None:
    """Given an async function, when a sync client has to call it, then it says what to do."""

    async def get_tide(city: str) -> str:
        """Return the tide of a city."""
        return f"High in {city}."

    chat = client.conversation(tools=[get_tide], max_turns=2, provider="openai")
    with pytest.raises(RequestError, match="async function"):
        chat.send("What is the tide of the city Rome?")


async def test_an_async_client_awaits_functions(async_client: AsyncClient) -> None:
    """Given an async function, when the model asks for it, then an async client awaits it."""

    async def get_tide(city: str) -> str:
        """Return the tide of a city."""
        return f"High in {city}."

    chat = await async_client.conversation(tools=[get_tide], max_turns=2, provider="openai")
    assert (await chat.send("What is the tide of the city Rome?")).text == "High in Rome."


def test_a_conversation_shows_itself(client: Client) -> None:
    """Given a conversation, when a notebook displays it, then each message is a row of text."""
    chat = client.conversation("tides", tools=[get_weather], max_turns=2, provider="openai")
    chat.send(QUESTION)
    chat.send("<b>And then?</b>")
    assert repr(chat).startswith("<Conversation tides: 6 messages, $")
    shown = chat._repr_html_()
    assert "get_weather(city=&#x27;Rome&#x27;, days=3)" in shown
    assert "&lt;b&gt;And then?&lt;/b&gt;" in shown


def test_answers_of_tools_that_are_no_functions(client: Client) -> None:
    """Given a described tool, when the caller answers, then the conversation goes on."""
    tool = {"name": "weather", "description": "the weather", "parameters": {"type": "object"}}
    chat = client.conversation(tools=[tool], provider="anthropic")
    chat.send("What is the weather?")
    (call,) = chat.tool_calls
    with pytest.raises(RequestError, match="no result"):
        chat.answer({})
    assert chat.answer({call.id: {"sky": "clear"}}).text == '{"sky": "clear"}'


@pytest.mark.parametrize("provider", VENDORS)
def test_pictures_are_seen(client: Client, provider: str) -> None:
    """Given a picture, when a model is asked about it, then it sees its size and colour."""
    artifact = client.artifacts.upload(make_picture((200, 40, 40)))
    fields = {"objective": "What does it show?", "images": [artifact.id]}
    run = client.runs.create("llm.generate", fields, provider=provider).wait(progress=False)
    assert run.text == "The picture has 64 × 48 pixels and is mostly red."
    parts = [{"type": "text", "text": "And this?"}, {"type": "image", "artifact_id": artifact.id}]
    messages = [{"role": "user", "content": parts}]
    run = client.runs.create("llm.generate", {"messages": messages}, provider=provider)
    assert "mostly red" in run.wait(progress=False).text


def test_a_result_is_reused_only_for_the_same_picture(client: Client) -> None:
    """Given the cache, when the picture differs, then the model is asked again."""
    red = client.artifacts.upload(make_picture((200, 40, 40)))
    blue = client.artifacts.upload(make_picture((40, 80, 200)))

    def ask(artifact_id: str) -> str:
        fields = {"objective": "What does it show?", "images": [artifact_id]}
        return client.runs.create("llm.generate", fields, cache=True).wait(progress=False).text

    assert ask(red.id) != ask(blue.id)
    assert ask(red.id) == ask(red.id)


def build_gallery() -> Workflow:
    """Build a workflow in which a model describes the pictures of two nodes."""
    flow = Workflow("gallery", cache=True)
    names = [flow.add(name, "image.generate", prompt=f"A {name}") for name in ("harbour", "mill")]
    flow.add("say", "llm.generate", objective="What do they show?", depends_on=names)
    return flow


def test_pictures_of_nodes_are_seen(client: Client) -> None:
    """Given nodes that make pictures, then a model that depends on them sees all of them."""
    first = client.workflows.submit(build_gallery()).wait(progress=False)
    job = client.jobs.get(first["say"].job_id or "").record
    assert str((job.output or {})["text"]).count("The picture has") == 2
    again = client.workflows.submit(build_gallery()).wait(progress=False)
    assert again["say"].cached_from == job.id


def test_pictures_of_nodes_need_a_model_that_sees(bare: Client) -> None:
    """Given pictures of nodes and no model that sees, then the workflow is refused at submit."""
    for provider, variable in (("runpod", "RUNPOD_API_KEY"), ("cohere", "COHERE_API_KEY")):
        bare.connections.create(provider, "environment", variable)
    with pytest.raises(RequestError, match="offers images") as refused:
        bare.workflows.submit(build_gallery())
    assert refused.value.code is ErrorCode.CREDENTIALS_MISSING


def test_pictures_of_others_are_refused(client: Client) -> None:
    """Given an artifact that the account does not have, then the request is refused."""
    fields = {"objective": "x", "images": ["art_0" + "1" * 25]}
    with pytest.raises(RequestError) as refused:
        client.runs.create("llm.generate", fields)
    assert refused.value.code is ErrorCode.NOT_FOUND


def test_only_pictures_are_shown(client: Client) -> None:
    """Given an artifact that is no picture, then the run fails before a call, and says so."""
    artifact = client.artifacts.upload(b"Tides turn.", filename="tides.txt")
    fields = {"objective": "What does it show?", "images": [artifact.id]}
    run = client.runs.create("llm.generate", fields)
    with pytest.raises(WorkError, match="text/plain"):
        run.wait(progress=False)
    assert run.cost_usd == 0


@pytest.mark.parametrize("provider", ["anthropic", "google", "minimax", "aws"])
def test_reasoning_is_summarized(client: Client, provider: str) -> None:
    """Given a level of reasoning, when the vendor shows a summary, then the output has it."""
    fields = {"objective": "A line on tides", "reasoning": "low"}
    run = client.runs.create("llm.generate", fields, provider=provider).wait(progress=False)
    assert run.record.output is not None
    assert run.record.output["reasoning"]


@pytest.mark.parametrize("provider", ["anthropic", "google", "aws"])
def test_stop_ends_the_answer(client: Client, provider: str) -> None:
    """Given a text that ends the answer, then the answer ends before it."""
    whole = client.runs.create("llm.generate", {"objective": "Tides"}, provider=provider)
    word = whole.wait(progress=False).text.split()[3]
    fields = {"objective": "Tides", "stop": [word]}
    run = client.runs.create("llm.generate", fields, provider=provider).wait(progress=False)
    assert word not in run.text


def test_the_router_leaves_out_models_that_lack_an_ability(client: Client) -> None:
    """Given a seed, when a route is shown, then models without seeds say so."""
    route = client.route("llm.generate", {"objective": "Tides", "seed": 7}).record
    assert route.provider in ("openai", "google")
    reasons = {c.provider: c.reason for c in route.candidates if c.excluded}
    assert reasons["anthropic"] == "does not offer seed"


def test_a_request_that_no_connected_model_can_serve_is_refused(bare: Client) -> None:
    """Given connections without an ability, then the refusal names the providers that have it."""
    bare.connections.create("anthropic", "environment", "ANTHROPIC_API_KEY")
    with pytest.raises(RequestError, match="openai") as refused:
        bare.runs.create("llm.generate", {"objective": "Tides", "seed": 7})
    assert refused.value.code is ErrorCode.CREDENTIALS_MISSING


def test_tools_and_reasoning_together_are_an_ability(bare: Client) -> None:
    """Given a provider whose models take tools and reasoning apart, then both are refused."""
    bare.connections.create("openai", "environment", "OPENAI_API_KEY")
    fields = {"objective": QUESTION, "tools": [get_weather]}
    assert bare.runs.create("llm.generate", fields).wait(progress=False).tool_calls
    bare.runs.create("llm.generate", {"objective": QUESTION, "reasoning": "low"})
    with pytest.raises(RequestError, match="connect one of anthropic") as refused:
        bare.runs.create("llm.generate", {**fields, "reasoning": "low"})
    assert refused.value.code is ErrorCode.CREDENTIALS_MISSING


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({}, "objective"),
        ({"objective": "a", "messages": [{"role": "user", "content": "b"}]}, "exactly one"),
        ({"messages": [{"role": "system", "content": "b"}]}, "a message of the user"),
        ({"messages": [{"role": "user", "content": ""}]}, "empty"),
        ({"messages": [{"role": "tool", "content": "b"}]}, "tool_call_id"),
        ({"objective": "a", "tool_choice": "required"}, "no tools"),
        ({"objective": "a", "tool_choice": {"name": "x"}}, "names no tool"),
        ({"objective": "a", "reasoning": -1}, "reasoning"),
    ],
)
def test_mistakes_are_refused(client: Client, fields: dict[str, object], fault: str) -> None:
    """Given an input with a mistake, then the refusal names it."""
    with pytest.raises(RequestError, match=fault) as refused:
        client.runs.create("llm.generate", fields)
    assert refused.value.code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("provider", ["openai", "anthropic", "google", "aws"])
def test_a_budget_holds_with_everything(client: Client, provider: str) -> None:
    """Given pictures, tools and reasoning under a budget, then the bill is within the bound."""
    artifact = client.artifacts.upload(make_picture((200, 40, 40)))
    apart = provider == "openai"  # chat completions have no tools with reasoning
    fields = {
        "objective": "Describe it in detail",
        "images": [artifact.id],
        "tools": [get_weather],
        "tool_choice": "none",
        "reasoning": "none" if apart else "low",
    }
    run = client.runs.create("llm.generate", fields, provider=provider, max_cost_usd=0.2)
    run.wait(progress=False)
    assert run.record.cost_usd is not None
    assert run.record.reservation_usd is not None
    assert 0 < run.record.cost_usd <= run.record.reservation_usd <= 0.2


async def test_the_async_client_converses(async_client: AsyncClient) -> None:
    """Given the async client, when a message is sent, then its function answers."""
    chat = await async_client.conversation(tools=[get_weather], max_turns=2)
    assert (await chat.send(QUESTION)).text == "Sun in Rome, 3 days."
