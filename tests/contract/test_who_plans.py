"""Who plans with `auto`, the default, outside the sandbox: a model that a test scripts, or none."""

import json
from collections.abc import Iterator

import pytest

from tests.conftest import clear_environment
from tests.contract.raw_http import SETTINGS, Json, RawCaller, open_door
from tests.support.scripted_model import MODEL, Say, ScriptedModel
from toolkit.settings import EVERY_MODEL, ModelUse, Settings, TokenPrices, VendorSettings

POEM = "A poem about tea"
CARD = "A social card with a poem about tea"
QUESTION = "For whom is it to be?"
KEY = "OPENAI_API_KEY"


def write_plan(*nodes: Json, question: str = "", **more: object) -> str:
    """Write a plan as the model does."""
    return json.dumps({"nodes": nodes, "question": question, **more})


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
RIGHT = write_plan(WRITE, LAY_OUT, deliverables=["card"])
CYCLE = write_plan({**WRITE, "depends_on": ["card"]}, LAY_OUT)


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedModel]:
    """The one language model that there is."""
    server = ScriptedModel()
    yield server
    server.close()


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory, model: ScriptedModel) -> Iterator[RawCaller]:
    """A door to a service outside the sandbox, whose text provider is the scripted model."""
    with pytest.MonkeyPatch.context() as patch:
        clear_environment(patch)
        vendor = VendorSettings(
            base_urls={"api": model.url},
            models={"text": MODEL},
            prices={EVERY_MODEL: TokenPrices(input_tokens=1, output_tokens=4)},
        )
        settings = Settings(
            data_dir=tmp_path_factory.mktemp("who"), vendors={"openai": vendor}, retries=0,
            connection_test_s=0, breaker_failures=1_000_000,
            planning=ModelUse(deadline_s=2.0, max_tokens=1_000),
            judging=ModelUse(deadline_s=2.0, max_tokens=400), **SETTINGS,
        )  # fmt: skip
        with open_door(settings) as opened:
            yield opened


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY, "sk-scripted")


@pytest.fixture
def caller(door: RawCaller) -> RawCaller:
    """A caller whose account has connected the model."""
    return door.sign_up("openai")


def draw_up(caller: RawCaller, objective: str = CARD, **constraints: object) -> Json:
    """Have an objective planned, and nothing run."""
    body = {"objective": objective, "constraints": constraints}
    return dict(caller.create("/v1/plans", body)["data"])


def test_a_connected_model_plans(caller: RawCaller, model: ScriptedModel) -> None:
    """Given a text provider outside the sandbox, then its model plans, for what the plan names."""
    model.script(RIGHT)
    made = draw_up(caller)
    assert (made["planner"], made["planner_reason"]) == ("llm", "A language model is connected.")
    assert [node["id"] for node in made["nodes"]] == ["write", "card"]
    (job_id,) = made["llm_job_ids"]
    job = caller.get(f"/v1/jobs/{job_id}")["data"]
    assert made["cost_incurred_usd"] == job["cost_incurred_usd"] == pytest.approx(0.0021)


def test_a_planned_preview_runs_without_planning_again(
    caller: RawCaller, model: ScriptedModel
) -> None:
    """Given a plan of the model's, when a task takes it, then no other plan is asked for."""
    model.script(RIGHT)
    made = draw_up(caller)
    given = {"nodes": made["nodes"], "deliverables": made["deliverables"]}
    for node in given["nodes"]:
        node["options"] = node["options"] or {}
    task = caller.create("/v1/tasks", {"objective": CARD, "plan": given})
    done = caller.poll(f"/v1/tasks/{task['id']}", "completed", "failed", "blocked")
    assert done["status"] == "completed", done
    assert len(model.asked["plan"]) == 1
    assert len(model.asked["text"]) == 1


def test_without_a_text_provider_keywords_plan(door: RawCaller, model: ScriptedModel) -> None:
    """Given no text provider, then the keyword planner plans, and the plan says why."""
    model.script(RIGHT)
    made = draw_up(door.sign_up(), POEM)
    assert made["planner"] == "rules"
    assert "No text provider is connected" in made["planner_reason"]
    assert model.asked["plan"] == []


@pytest.mark.parametrize("limit", [0, 1e-4])
def test_a_budget_below_the_bound_leaves_it_to_keywords(
    caller: RawCaller, model: ScriptedModel, limit: float
) -> None:
    """Given a budget that no call of the model fits, then keywords plan, and nothing is spent."""
    model.script(RIGHT)
    made = draw_up(caller, POEM, max_cost_usd=limit)
    assert (made["planner"], made["cost_incurred_usd"]) == ("rules", 0)
    assert "language model" in made["planner_reason"]
    assert model.asked["plan"] == []


FAILURES = {
    "out of order": [Say(status=503)],
    "refused": [Say("", "content_filter")],
    "late": [Say(hangs=True)],
    "no plan in three answers": [CYCLE, "Sure!", CYCLE],
}


@pytest.mark.parametrize("answers", FAILURES.values(), ids=FAILURES)
def test_where_the_model_fails_keywords_plan(
    caller: RawCaller, model: ScriptedModel, answers: list[Say | str]
) -> None:
    """Given a model that fails, then the keyword planner plans, and the plan says what failed."""
    model.script(*answers)
    made = draw_up(caller, POEM)
    assert made["planner"] == "rules"
    assert len(made["nodes"]) == 1
    assert "language model" in made["planner_reason"]
    assert len(made["llm_job_ids"]) == len(model.asked["plan"]) == len(answers)


def test_a_question_of_the_model_counts_where_keywords_do_not_do(
    caller: RawCaller, model: ScriptedModel
) -> None:
    """Given a model that only asks, then it is asked of the person unless keywords place all."""
    model.script(*[write_plan(question=QUESTION)] * 2)
    plain = draw_up(caller, POEM)
    assert (plain["planner"], plain["question"]) == ("rules", None)
    assert QUESTION in plain["planner_reason"]
    vague = draw_up(caller, "Make a nice one")
    assert (vague["planner"], vague["question"]) == ("llm", QUESTION)


def test_a_courtesy_question_beside_a_plan_is_a_note(
    caller: RawCaller, model: ScriptedModel
) -> None:
    """Given a plan and a question, then the plan can be run, and the question is told with it."""
    model.script(write_plan(WRITE, LAY_OUT, question=QUESTION))
    made = draw_up(caller)
    assert (made["question"], len(made["nodes"])) == (None, 2)
    assert QUESTION in made["rationale"]


def test_an_answer_that_was_cut_off_may_be_longer(caller: RawCaller, model: ScriptedModel) -> None:
    """Given an answer at its cap, then the next may have twice as many tokens."""
    model.script(Say(RIGHT[:50], "length"), RIGHT)
    assert draw_up(caller)["planner"] == "llm"
    caps = [body["max_completion_tokens"] for body in model.asked["plan"]]
    assert caps == [1_000, 2_000]
    assert "cut off after 1000 tokens" in json.dumps(model.asked["plan"][1]["messages"])


def test_an_artifact_that_is_not_there_is_asked_about_first(
    caller: RawCaller, model: ScriptedModel
) -> None:
    """Given the id of no artifact, then the person is asked, and no call is paid for."""
    model.script(RIGHT)
    nobodys = "art_01hzy3v7k8m9n0p1q2r3s4t5v6"
    made = draw_up(caller, f"Lay {nobodys} out on a card")
    assert nobodys in made["question"]
    assert (made["nodes"], model.asked["plan"]) == ([], [])


def test_an_artifact_that_is_there_is_described(caller: RawCaller, model: ScriptedModel) -> None:
    """Given an artifact of the account, then the model is told what it is."""
    model.script(RIGHT)
    key = {"Authorization": f"Bearer {caller.key}"}
    files = {"file": ("tea.txt", b"Tea is a drink.", "text/plain")}
    artifact_id = caller.http.post("/v1/artifacts", headers=key, files=files).json()["id"]
    draw_up(caller, f"A social card with a poem about tea, from {artifact_id}")
    (asked,) = model.asked["plan"]
    assert f"{artifact_id} is text/plain" in json.dumps(asked["messages"])


def test_the_judge_is_asked_too(caller: RawCaller, model: ScriptedModel) -> None:
    """Given a task by default, then the model plans it and judges its text, and both are paid."""
    model.script(RIGHT)
    task = caller.task(CARD, max_cost_usd=0.5)
    assert task["status"] == "completed"
    assert len(task["data"]["llm_job_ids"]) == 2
    assert [len(model.asked[kind]) for kind in ("plan", "text", "verdict")] == [1, 1, 1]
    assert task["data"]["review"]["reviewer"] == "judge"


def test_checks_alone_ask_nobody(caller: RawCaller, model: ScriptedModel) -> None:
    """Given `review: checks`, then no model judges."""
    model.script(RIGHT)
    task = caller.task(CARD, review="checks")
    assert task["data"]["review"]["reviewer"] == "checks"
    assert model.asked["verdict"] == []
