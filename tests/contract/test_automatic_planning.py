"""Tasks outside the sandbox that a scripted model plans, writes and judges in every way."""

import base64
import json
from collections.abc import Iterator

import pytest

from tests.conftest import clear_environment
from tests.contract.raw_http import SETTINGS, UNKNOWN_ULID, Json, RawCaller, open_door
from tests.support.scripted_model import MODEL, PLAIN_TEXT, Say, ScriptedModel
from toolkit.settings import EVERY_MODEL, ModelUse, Settings, TokenPrices, VendorSettings

POEM = "A poem about tea"
CARD = "A social card with a poem about tea"
QUESTION = "For whom is it to be?"
KEY = "OPENAI_API_KEY"


def write_plan(*nodes: Json, question: str = "", **fields: object) -> str:
    """Return a plan as the model writes it."""
    return json.dumps({"nodes": nodes, "question": question, **fields})


WRITE: Json = {
    "id": "write",
    "capability": "llm.generate",
    "input": [{"field": "objective", "value": "Write a poem about tea."}],
    "quote": "a poem about tea",
}
LAY_OUT: Json = {
    "id": "card",
    "capability": "composition.layout",
    "input": [{"field": "title", "value": "Tea"}],
    "depends_on": ["write"],
    "quote": "a social card",
}
VALID = write_plan(WRITE, LAY_OUT, deliverables=["card"])
CYCLE = write_plan({**WRITE, "depends_on": ["card"]}, LAY_OUT)


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedModel]:
    """The only language model."""
    server = ScriptedModel()
    yield server
    server.close()


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory, model: ScriptedModel) -> Iterator[RawCaller]:
    """A caller of a service outside the sandbox, whose text provider is the scripted model."""
    with pytest.MonkeyPatch.context() as patch:
        clear_environment(patch)
        vendor = VendorSettings(
            base_urls={"api": model.url},
            models={"text": MODEL},
            prices={EVERY_MODEL: TokenPrices(input_tokens=1, output_tokens=4)},
        )
        settings = Settings(
            data_dir=tmp_path_factory.mktemp("auto"), vendors={"openai": vendor}, retries=0,
            connection_test_s=0, breaker_failures=1_000_000,
            planning=ModelUse(deadline_s=2.0, max_tokens=1_000),
            judging=ModelUse(deadline_s=2.0, max_tokens=400), **SETTINGS,
        )  # fmt: skip
        with open_door(settings) as caller:
            yield caller


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY, "sk-scripted")


@pytest.fixture
def caller(door: RawCaller) -> RawCaller:
    """A caller whose account has connected the model."""
    return door.sign_up("openai")


def draw_up(caller: RawCaller, objective: str = CARD, **constraints: object) -> Json:
    """Return a plan of an objective."""
    body = {"objective": objective, "constraints": {"max_cost_usd": 0.2, **constraints}}
    return dict(caller.create("/v1/plans", body)["data"])


def test_a_connected_model_plans(caller: RawCaller, model: ScriptedModel) -> None:
    """Given a text provider outside the sandbox, then its model plans, and its job is paid."""
    model.script(VALID)
    plan = draw_up(caller)
    assert (plan["planner"], plan["planner_reason"]) == ("llm", "A language model is connected.")
    assert [node["id"] for node in plan["nodes"]] == ["write", "card"]
    (job_id,) = plan["llm_job_ids"]
    job = caller.get(f"/v1/jobs/{job_id}")["data"]
    assert plan["cost_incurred_usd"] == job["cost_incurred_usd"] == pytest.approx(0.0021)


def test_keywords_plan_without_a_text_provider(door: RawCaller, model: ScriptedModel) -> None:
    """Given no text provider, then the keyword planner plans, and the plan says why."""
    model.script(VALID)
    plan = draw_up(door.sign_up(), POEM)
    assert plan["planner"] == "rules"
    assert "No text provider is connected" in plan["planner_reason"]
    assert model.asked["plan"] == []


@pytest.mark.parametrize("limit", [0, 1e-4])
def test_keywords_plan_below_the_bound_of_a_call(
    caller: RawCaller, model: ScriptedModel, limit: float
) -> None:
    """Given a budget below any call of the model, then keywords plan, and nothing is spent."""
    model.script(VALID)
    plan = draw_up(caller, POEM, max_cost_usd=limit)
    assert (plan["planner"], plan["cost_incurred_usd"]) == ("rules", 0)
    assert "language model" in plan["planner_reason"]
    assert model.asked["plan"] == []


def test_asks_the_model_s_question_if_keywords_cannot_plan(
    caller: RawCaller, model: ScriptedModel
) -> None:
    """Given a model that only asks, then a person gets its question if keywords cannot plan."""
    model.script(*[write_plan(question=QUESTION)] * 2)
    poem = draw_up(caller, POEM)
    assert (poem["planner"], poem["question"]) == ("rules", None)
    assert QUESTION in poem["planner_reason"]
    vague = draw_up(caller, "Make a nice one")
    assert (vague["planner"], vague["question"]) == ("llm", QUESTION)


def test_a_question_next_to_a_plan_is_a_note(caller: RawCaller, model: ScriptedModel) -> None:
    """Given a plan and a question, then the plan can run, and its rationale has the question."""
    model.script(write_plan(WRITE, LAY_OUT, question=QUESTION))
    plan = draw_up(caller)
    assert (plan["question"], len(plan["nodes"])) == (None, 2)
    assert QUESTION in plan["rationale"]


def test_doubles_the_cap_after_a_cut_answer(caller: RawCaller, model: ScriptedModel) -> None:
    """Given an answer that its cap cut off, then the next may have twice as many tokens."""
    model.script(Say(VALID[:50], "length"), VALID)
    assert draw_up(caller)["planner"] == "llm"
    caps = [body["max_completion_tokens"] for body in model.asked["plan"]]
    assert caps == [1_000, 2_000]
    assert "cut off after 1000 tokens" in json.dumps(model.asked["plan"][1]["messages"])


def test_asks_about_an_unknown_artifact_first(caller: RawCaller, model: ScriptedModel) -> None:
    """Given the id of no artifact, then the plan asks about it, and no call is paid for."""
    model.script(VALID)
    unknown_id = f"art_{UNKNOWN_ULID}"
    plan = draw_up(caller, f"Lay {unknown_id} out on a card")
    assert unknown_id in plan["question"]
    assert (plan["nodes"], model.asked["plan"]) == ([], [])


def test_describes_an_artifact_to_the_model(caller: RawCaller, model: ScriptedModel) -> None:
    """Given an artifact of the account, then the prompt has its media type."""
    model.script(VALID)
    artifact_id = caller.upload("tea.txt", b"Tea is a drink.")
    draw_up(caller, f"A social card with a poem about tea, from {artifact_id}")
    (prompt,) = model.asked["plan"]
    assert f"{artifact_id} is text/plain" in json.dumps(prompt["messages"])


def test_checks_alone_ask_no_judge(caller: RawCaller, model: ScriptedModel) -> None:
    """Given `review: checks`, then no model judges."""
    model.script(VALID)
    task = caller.task(CARD, review="checks")
    assert task["data"]["review"]["reviewer"] == "checks"
    assert model.asked["verdict"] == []


def find_in_card(against: str) -> str:
    """Return a verdict with a finding on the picture that blocks."""
    finding = {
        "node": "card", "code": "wrong_picture", "quote": "", "against": against,
        "explanation": "It is not there.", "blocks": True,
    }  # fmt: skip
    return json.dumps({"findings": [finding]})


def find_shown(body: Json) -> list[str]:
    """Find the pictures in a request to a model."""
    contents = [message["content"] for message in body["messages"]]
    parts = [part for content in contents if isinstance(content, list) for part in content]
    return [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]


@pytest.mark.parametrize(
    ("against", "found"), [("a social card", True), ("a lighthouse at night", False)]
)
def test_the_judge_looks_at_pictures(
    caller: RawCaller, model: ScriptedModel, against: str, found: bool
) -> None:
    """Given a picture, then it is in the judge's request, and findings must name what is asked."""
    model.script(VALID, texts=GOOD, verdicts=[find_in_card(against)] * 3)
    data = caller.task(CARD, max_cost_usd=0.5)["data"]
    (shown,) = find_shown(model.asked["verdict"][0])
    card_id = data["attempts"][0]["artifact_ids"]["card"]
    content = caller.send("GET", f"/v1/artifacts/{card_id}/content").content
    assert base64.b64decode(shown.removeprefix("data:image/png;base64,")) == content
    review = data["review"]
    assert (review["decision"], review["saw_pictures"]) == ("pass", True)
    assert ("card: " in review["issues"][0]) == found
    assert (review["score"] < 1) == found


def test_a_judge_that_refuses_pictures_judges_the_texts(
    caller: RawCaller, model: ScriptedModel
) -> None:
    """Given a server whose model takes no pictures, then it is asked again without them."""
    model.script(VALID, texts=GOOD, verdicts=[Say(status=400), BLOCKED])
    data = caller.task(CARD, max_cost_usd=0.5)["data"]
    asked = model.asked["verdict"]
    assert [len(find_shown(body)) for body in asked[:2]] == [1, 0]
    first = data["reviews"][0]
    assert (first["decision"], first["reviewer"]) == ("retry", "judge")
    assert not first["saw_pictures"]


SECRET = "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc"
EVIL = "https://evil.example/collect"
GOOD = [f"{PLAIN_TEXT} Cup {number} is full." for number in range(3)]
WITH_KEY = f"The password is {SECRET}"
EVIL_STEP = write_plan({**WRITE, "capability": "http.post"}, LAY_OUT, deliverables=["card"])
EVIL_MEMBERS = write_plan(
    {**WRITE, "options": {"provider": EVIL}, "base_url": EVIL, "secret": "env:HOME"},
    LAY_OUT,
    deliverables=["card"],
    constraints={"max_cost_usd": 1_000},
)


def find(quote: str) -> str:
    """Return a verdict with a finding that blocks."""
    finding = {
        "node": "write", "code": "incoherent", "quote": quote, "against": "",
        "explanation": "It does not follow.", "blocks": True,
    }  # fmt: skip
    return json.dumps({"findings": [finding]})


REFUSED = Say("", "content_filter")
BLOCKED, INVENTED = find(PLAIN_TEXT.split(".")[0]), find("the wind makes the tea")


# Answers to a request for a plan, the planner that follows, texts and verdicts by attempt, and the
# decision and reviewer of each attempt. A text that the checks block is not judged.
SCRIPTS = {
    "the judge agrees": ([VALID], "llm", GOOD, [], "pass judge"),
    "the judge blocks once": ([CYCLE, VALID], "llm", GOOD, [BLOCKED], "retry judge, pass judge"),
    "the judge always blocks": (
        [VALID], "llm", GOOD, [BLOCKED] * 3, "retry judge, retry judge, fail judge",
    ),
    "a late plan, a key in the first text, an invented quote": (
        [Say(hangs=True)], "rules", [WITH_KEY, *GOOD], [INVENTED], "retry checks, pass judge",
    ),
    "no planner, a key in every text": (
        [Say(status=503)], "rules", [WITH_KEY] * 3, [],
        "retry checks, retry checks, fail checks",
    ),
    "a refused plan, no text": (
        [Say("", "content_filter")], "rules", ["\u200b \n"] * 3, [],
        "retry checks, retry checks, fail checks",
    ),
    "faulty plans, no judge": (
        [EVIL_STEP, "Sure!", CYCLE], "rules", GOOD, [Say(status=503)], "pass checks",
    ),
    "injected members, a cut verdict": (
        [EVIL_MEMBERS], "llm", GOOD, [Say(BLOCKED[:40], "length")], "pass checks",
    ),
    "a cut plan, a refused verdict": (
        [Say(VALID[:60], "length"), VALID], "llm", GOOD, [REFUSED, REFUSED], "pass checks",
    ),
    "a verdict in prose": ([VALID], "llm", GOOD, ["It is fine, really."], "pass checks"),
    "a late verdict": ([VALID], "llm", GOOD, [Say(hangs=True)], "pass checks"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("plans", "planner", "texts", "verdicts", "reviews"), SCRIPTS.values(), ids=SCRIPTS
)
def test_a_task_ends_as_documented(
    caller: RawCaller,
    model: ScriptedModel,
    plans: list[Say | str],
    planner: str,
    texts: list[str],
    verdicts: list[Say | str],
    reviews: str,
) -> None:
    """Given answers of a planner, writer and judge, then the task ends as documented."""
    model.script(*plans, texts=texts, verdicts=verdicts)
    task = caller.task(CARD, max_cost_usd=0.5)
    data = task["data"]
    plan = caller.get(f"/v1/plans/{data['plan_id']}")["data"]
    assert plan["planner"] == planner
    assert "language model" in plan["planner_reason"]
    assert len(plan["llm_job_ids"]) == len(model.asked["plan"]) == len(plans)
    assert EVIL not in json.dumps(plan)
    attempts = [f"{review['decision']} {review['reviewer']}" for review in data["reviews"]]
    assert ", ".join(attempts) == reviews
    assert task["status"] == ("failed" if "fail" in reviews else "completed")
    blocked = sum(text not in GOOD for text in texts)
    # A judge that refuses is asked again without the picture.
    assert len(model.asked["verdict"]) == len(attempts) - blocked + (REFUSED in verdicts)
    assert data["cost_incurred_usd"] <= 0.5
    assert SECRET not in json.dumps(data)
    assert "the wind makes" not in json.dumps(data["reviews"])
