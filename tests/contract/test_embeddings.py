"""Embeddings and transcripts."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.support.recordings import make_silent_wav
from tests.support.timing import wait_until
from toolkit import Client, WorkError, Workflow
from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.sandbox import Faults
from toolkit.sandbox.audio.speech import VoiceSettings, synthesize_speech
from toolkit.settings import Settings

pytestmark = pytest.mark.embedded

TEXTS = ["the tide turns", "tides", "a mill"]


@pytest.mark.parametrize("provider", ["openai", "google", "minimax", "aws"])
def test_texts_that_share_words_are_near(client: Client, provider: str) -> None:
    """Given texts, when a vendor embeds them, then the matrix has a unit row for each."""
    run = client.runs.create("embed.generate", {"texts": TEXTS * 40}, provider=provider)
    run.wait(progress=False)
    vectors = run.vectors
    assert run.record.output is not None
    assert vectors.shape == (120, run.record.output["dimensions"])
    assert vectors.dtype == np.float32
    assert vectors[0] @ vectors[1] > 0.6 > vectors[0] @ vectors[2]
    assert run.record.usage["input_tokens"] >= 120


def test_a_column_is_embedded_once(client: Client) -> None:
    """Given a column with repetitions, then rows are aligned, and a second call costs nothing."""
    frame = pd.DataFrame({"text": [*TEXTS, "tides"]}, index=[7, 3, 5, 1])
    vectors = client.embed(frame["text"])
    assert (vectors[1] == vectors[3]).all()
    assert (client.embed(frame["text"]) == vectors).all()
    assert client.runs.list()[0].cost_usd == 0


def test_a_table_of_an_artifact_without_vectors_is_refused(client: Client) -> None:
    """Given a run whose artifact is a text, then it has no vectors, and the error says so."""
    run = client.runs.create("llm.generate", {"objective": "A line on tides"}).wait(progress=False)
    with pytest.raises(RequestError, match="holds no vectors"):
        print(run.vectors)


def test_a_node_that_is_tried_again_keeps_its_vectors(settings: Settings, faults: Faults) -> None:
    """Given a call that fails after others, when its node is tried again, then it alone is made."""
    flow = Workflow("vectors", max_retries=1, provider="openai")
    flow.add("vectors", "embed.generate", texts=[f"Tide {i}" for i in range(250)])
    faults.latency("openai", 500)
    quick = settings.model_copy(update={"retries": 0})
    with Client.local(settings=quick, faults=faults) as client:
        run = client.workflows.submit(flow)
        wait_until(lambda: len(faults.calls) == 2)
        faults.clear()
        faults.fail("openai", status=500, times=1)
        run.wait(progress=False)
        node = run["vectors"]
        job = client.jobs.get(node.job_id or "").record
    statuses = [attempt.status for attempt in job.attempts]
    assert (run.status, node.retry_count) == ("completed", 1)
    assert statuses == ["completed", "completed", "failed", "completed"]
    costs = [attempt.cost_usd or 0 for attempt in job.attempts]
    assert node.cost_usd == pytest.approx(sum(costs))


def test_texts_come_from_an_artifact(client: Client) -> None:
    """Given an artifact with lines, then each line has a vector."""
    artifact = client.artifacts.upload("\n".join(TEXTS).encode(), filename="notes.txt")
    run = client.runs.create("embed.generate", {"artifact_id": artifact.id}).wait(progress=False)
    assert run.vectors.shape[0] == len(TEXTS)


def test_the_length_of_vectors_is_chosen(client: Client) -> None:
    """Given a length, then models that cannot shorten vectors are left out."""
    assert client.embed("tides", dimensions=64).shape == (1, 64)
    with pytest.raises(RequestError) as refused:
        client.embed("tides", dimensions=64, provider="minimax")
    assert refused.value.code is ErrorCode.CREDENTIALS_MISSING


@pytest.mark.parametrize("texts", [["tide", ""], ["tide", None], ["tide", 5]])
def test_items_that_are_no_texts_are_named(client: Client, texts: list[object]) -> None:
    """Given an item without text, then the error names it before any request."""
    with pytest.raises(RequestError, match="Item 1"):
        client.embed(texts)


def test_an_artifact_without_texts_fails(client: Client) -> None:
    """Given an artifact that holds no texts, then the run fails and says so."""
    artifact = client.artifacts.upload(b"[1, 2]", filename="numbers.json")
    run = client.runs.create("embed.generate", {"artifact_id": artifact.id})
    with pytest.raises(WorkError, match="empty or longer"):
        run.wait(progress=False)


WORDS = "The tide turns twice a day. Mills once ran on it."

GERMAN = "Der Kaffee ist heute sehr gut, und die Milch ist frisch."


def speak(client: Client, text: str) -> str:
    """Have a text spoken, and return the id of the recording."""
    run = client.runs.create("speech.generate", {"text": text}).wait(progress=False)
    return str(run.artifact_id)


@pytest.mark.parametrize("provider", ["openai", "google", "elevenlabs"])
def test_speech_comes_back_as_its_text(client: Client, provider: str) -> None:
    """Given speech, when a vendor transcribes it, then words, times and language are right."""
    recording = speak(client, WORDS)
    run = client.transcribe(recording, provider=provider, max_cost_usd=0.01)
    assert run.text == WORDS
    assert [segment.text for segment in run.segments] == [
        "The tide turns twice a day.",
        "Mills once ran on it.",
    ]
    assert run.output["language"] == "en"
    spoken = client.artifacts.get(recording).record.metadata["duration_ms"] / 1_000
    first, last = run.segments
    assert 0 == first.start_s < first.end_s <= last.start_s < last.end_s
    assert last.end_s == pytest.approx(run.output["duration_s"], abs=0.01)
    assert run.output["duration_s"] == pytest.approx(spoken, abs=0.1)
    assert run.reservation_usd is not None
    assert run.cost_usd is not None
    assert 0 < run.cost_usd <= run.reservation_usd


@pytest.mark.parametrize("provider", ["openai", "google", "elevenlabs", "openai/gpt-transcribe"])
def test_the_language_is_a_short_code(client: Client, provider: str) -> None:
    """Given German, then each vendor's name of the language becomes its code of two letters."""
    run = client.transcribe(speak(client, GERMAN), provider=provider)
    assert (run.text, run.output["language"]) == (GERMAN, "de")


def test_takes_bytes_a_file_and_an_artifact(client: Client, tmp_path: Path) -> None:
    """Given the same audio in three forms, then its words are the same, and paid for once."""
    audio, _ = synthesize_speech(WORDS, VoiceSettings("Rachel"))
    file = tmp_path / "talk.mp3"
    file.write_bytes(audio)
    artifact = client.artifacts.upload(file)
    runs = [client.transcribe(each) for each in (artifact, artifact.id, audio, file, str(file))]
    assert {run.text for run in runs} == {WORDS}
    assert [run.cost_usd == 0 for run in runs[:2]] == [False, True]


def test_segments_show_themselves(client: Client) -> None:
    """Given a transcript, then notebook and frame show a row for each sentence."""
    run = client.transcribe(speak(client, WORDS))
    assert run.segments.to_frame()["text"].tolist() == [each.text for each in run.segments]
    shown = run.segments._repr_html_()
    assert "2 segments" in shown
    assert "Mills once ran on it." in shown
    assert "output segments" in run._repr_mimebundle_()["text/html"]


def test_a_sound_without_words_is_described(client: Client) -> None:
    """Given a recording that the sandbox did not speak, then it tells what it heard."""
    run = client.transcribe(make_silent_wav(2.5))
    assert run.text == "A sound of 2.5 seconds without words."
    assert run.output["duration_s"] == 2.5


def test_models_without_times_give_one_segment(client: Client) -> None:
    """Given a model that answers with words alone, then one segment spans the audio."""
    run = client.transcribe(speak(client, WORDS), provider="openai/gpt-transcribe")
    (segment,) = run.segments
    assert (segment.start_s, segment.end_s) == (0, run.output["duration_s"])


def test_a_prompt_needs_a_model_that_takes_it(client: Client) -> None:
    """Given a prompt, then vendors that take none are left out."""
    recording = speak(client, WORDS)
    assert client.transcribe(recording, prompt="Mills", language="en").text == WORDS
    with pytest.raises(RequestError) as refused:
        client.transcribe(recording, prompt="Mills", provider="elevenlabs")
    assert refused.value.code is ErrorCode.CREDENTIALS_MISSING


def test_a_file_that_is_no_audio_fails(client: Client) -> None:
    """Given a text file, then the run fails before any vendor is called."""
    with pytest.raises(WorkError, match="not an MP3, M4A or WAV") as failed:
        client.transcribe(b"no audio at all", provider="elevenlabs")
    assert failed.value.code is ErrorCode.PROVIDER_REJECTED
    assert client.runs.list()[0].cost_incurred_usd == 0


@pytest.mark.parametrize(("provider", "limit"), [("openai", "25 MB"), ("google", "14 MB")])
def test_a_file_that_is_too_large_is_not_sent(client: Client, provider: str, limit: str) -> None:
    """Given audio above a vendor's limit, then the run fails before the call and names it."""
    large = make_silent_wav(1_600)
    with pytest.raises(WorkError, match=f"at most {limit}") as failed:
        client.transcribe(large, provider=provider)
    assert failed.value.code is ErrorCode.PROVIDER_REJECTED
    assert client.runs.list()[0].cost_incurred_usd == 0


def test_long_audio_needs_its_budget(client: Client) -> None:
    """Given a budget that covers a part of the audio, then nothing is sent or paid."""
    with pytest.raises(WorkError) as failed:
        client.transcribe(make_silent_wav(600), provider="openai", max_cost_usd=0.01)
    assert failed.value.code is ErrorCode.BUDGET_EXCEEDED
    assert client.runs.list()[0].cost_incurred_usd == 0
