"""Real speech through a real recognizer: pocketsphinx, behind a local server of OpenAI's wire.

`recordings/weather.mp3` was spoken once by Piper 1.8.0 with the voice en_US-joe-medium (CC0).
"""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import miniaudio
import pytest
from multipart import MultipartParser

from tests.support.loopback_server import JsonHandler, LoopbackServer
from toolkit import Client
from toolkit.media.text_parts import fold
from toolkit.media.text_words import measure_word_errors, split_signs
from toolkit.settings import Settings

pocketsphinx = pytest.importorskip("pocketsphinx", reason="needs the extra `test`")

RECORDING = Path(__file__).parent / "recordings/weather.mp3"
SPOKEN = (
    "Good morning. The weather today is cold and clear. There will be snow in the mountains and"
    " rain on the coast. People came from the town to watch the water. The old mill by the river"
    " turns twice a day."
)
# The name by which local servers are asked, so that it has a price.
MODEL, RATE, FRAMES_PER_S = "whisper-1", 16_000, 100
MAX_WORD_ERRORS = 0.2


def name_word(segment: Any) -> str:
    """Return a word without the number of its pronunciation: `to(2)`."""
    return str(segment.word).partition("(")[0]


class TranscriptionHandler(JsonHandler):
    """Answers transcriptions as OpenAI does, with the words that pocketsphinx recognizes."""

    def answer_get(self) -> None:
        """List the model."""
        self.send_json(200, {"object": "list", "data": [{"id": MODEL, "object": "model"}]})

    def answer_post(self) -> None:
        """Transcribe the file of a form."""
        body = self.rfile.read(int(self.headers["content-length"]))
        boundary = self.headers["content-type"].partition("boundary=")[2]
        form = {part.name: part for part in MultipartParser(io.BytesIO(body), boundary)}
        assert self.path == "/v1/audio/transcriptions"
        assert form["model"].value == MODEL
        assert form["response_format"].value == "verbose_json"
        sound = miniaudio.decode(form["file"].raw, nchannels=1, sample_rate=RATE)
        decoder = pocketsphinx.Decoder(samprate=RATE, loglevel="FATAL")
        decoder.start_utt()
        decoder.process_raw(sound.samples.tobytes(), full_utt=True)
        decoder.end_utt()
        words = [word for word in decoder.seg() if word.word[0].isalpha()]
        segments = [
            {
                "text": name_word(word),
                "start": word.start_frame / FRAMES_PER_S,
                "end": word.end_frame / FRAMES_PER_S,
            }
            for word in words
        ]
        text = " ".join(map(name_word, words))
        duration = len(sound.samples) / RATE
        answer = {"text": text, "language": "english", "duration": duration, "segments": segments}
        self.send_json(200, answer)


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    """A client whose transcriber is pocketsphinx."""
    monkeypatch.setenv("LOCAL_KEY", "local")
    server = LoopbackServer(TranscriptionHandler)
    vendor = {"base_urls": {"api": server.url}}
    settings = Settings.model_validate({"data_dir": tmp_path, "vendors": {"openai": vendor}})
    with Client.local(settings=settings) as client:
        client.connections.create("openai", "environment", "LOCAL_KEY")
        yield client
    server.close()


def test_real_speech_is_recognized(client: Client) -> None:
    """Given a recording of speech, then nearly all of its words come back, each at its time."""
    run = client.transcribe(RECORDING, max_cost_usd=0.01)
    assert run.text is not None
    errors = measure_word_errors(split_signs(fold(SPOKEN)), split_signs(fold(run.text)))
    print(f"word error rate {errors:.1%}: {run.text}")
    assert errors <= MAX_WORD_ERRORS
    assert run.model == MODEL
    assert run.output["language"] == "en"
    times = [time for part in run.segments for time in (part.start_s, part.end_s)]
    assert times == sorted(times)
    # The sentences about the weather take the first half, and a second of silence follows them.
    snow, town = (next(p for p in run.segments if p.text == word) for word in ("snow", "town"))
    assert snow.start_s < 5 < town.start_s < run.output["duration_s"]
    assert run.cost_usd == pytest.approx(run.output["duration_s"] * 0.0001, rel=0.01)
