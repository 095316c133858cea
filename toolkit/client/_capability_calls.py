"""Calls of the built-in capabilities, each with the fields of its input as arguments.

Written by `scripts/capability_calls.py` from the capabilities' schemas.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Generic, Literal, TypeVar

from toolkit.client._options import start_capability
from toolkit.client._tools import ToolArgument
from toolkit.contract.run_options import RunOptions
from toolkit.contract.short_tracebacks import UnknownAttributeError

R = TypeVar("R")  # a run; in the async client, a coroutine that returns a run


class CapabilityCalls(ABC, Generic[R]):
    """A method for each built-in capability; the decorator of the method starts the run.

    The fields of the input are arguments; `options` holds the options of the run, and `version` the
    version of the capability, which is the newest by default.
    """

    _known_ids: dict[str, None]

    @abstractmethod
    def _start(
        self,
        name: str,
        fields: Mapping[str, object],
        version: str | None,
        options: RunOptions | None,
    ) -> R:
        """Start a run of a capability with these inputs; both forms of the client define how."""

    def _start_named(
        self,
        name: str,
        *,
        version: str | None = None,
        options: RunOptions | None = None,
        **fields: object,
    ) -> R:
        """Start a run of a capability that is not built in."""
        return self._start(name, fields, version, options)

    if not TYPE_CHECKING:  # calls of built-in capabilities are typed methods

        def __getattr__(self, name: str) -> object:
            if name.startswith("_"):
                raise AttributeError(name)
            for id in self._known_ids:
                if id.replace(".", "_") == name:
                    return partial(self._start_named, id)
            raise UnknownAttributeError(self, name)

    def __dir__(self) -> list[str]:
        called = (id.replace(".", "_") for id in self._known_ids)
        return sorted({*super().__dir__(), *(name for name in called if name.isidentifier())})

    @start_capability("image.generate")
    def image_generate(
        self,
        *,
        prompt: str,
        negative_prompt: str = "",
        width: int = 1024,
        height: int = 1024,
        steps: int = 25,
        seed: int | None = None,
        version: str | None = None,
        options: RunOptions | None = None,
    ) -> R:
        """Makes an image from a prompt on a GPU, serverless or on an endpoint of yours.

        Args:
            prompt: what the image shows.
            negative_prompt: what the image must not show.
            width: in pixels.
            height: in pixels.
            steps: denoising steps: more is slower.
            seed: the same seed repeats an image.
            version: version of the capability. Default: the newest.
            options: options of a run, such as `{"provider": "openai"}`.

        Raises:
            RequestError: `CREDENTIALS_MISSING`, `INVALID_REQUEST` and others.
        """
        raise NotImplementedError

    @start_capability("research.gather")
    def research_gather(
        self,
        *,
        topic: str,
        language: str = "en",
        max_sources: int = 3,
        synthesize: bool = True,
        version: str | None = None,
        options: RunOptions | None = None,
    ) -> R:
        """Looks a topic up in an encyclopedia and tells what it says, with sources.

        Args:
            topic: what to look up: a name or a few words.
            language: which encyclopedia to read, by its language code.
            max_sources: the most articles to read.
            synthesize: add a synthesis by a connected LLM, which is billed.
            version: version of the capability. Default: the newest.
            options: options of a run, such as `{"provider": "openai"}`.

        Raises:
            RequestError: `CREDENTIALS_MISSING`, `INVALID_REQUEST` and others.
        """
        raise NotImplementedError

    @start_capability("composition.layout")
    def composition_layout(
        self,
        *,
        title: str,
        subtitle: str = "",
        body: str = "",
        bullets: Sequence[str] = (),
        footer: str = "",
        kicker: str = "",
        image: str | None = None,
        template: Literal["classic", "split", "cover", "quote"] | None = None,
        theme: Literal["dawn", "paper", "mint", "lilac", "midnight", "ember", "forest"] = "dawn",
        width: int = 1200,
        height: int = 630,
        format: Literal["png", "svg"] = "png",
        version: str | None = None,
        options: RunOptions | None = None,
    ) -> R:
        """Lays text and a picture out as a social card, as PNG or SVG.

        Args:
            title: the headline; the quotation in the template `quote`.
            subtitle: a line under it; the speaker in `quote`.
            body: running text; upstream fills it, cut to its first sentences.
            bullets: short points.
            footer: one line at the foot.
            kicker: a small label above the title.
            image: id of an artifact with a PNG, JPEG or WebP picture; upstream fills it.
            template: the arrangement; `split` with a picture and `classic` without.
            theme: the palette.
            width: in pixels.
            height: in pixels.
            format: what is made.
            version: version of the capability. Default: the newest.
            options: options of a run, such as `{"provider": "openai"}`.

        Raises:
            RequestError: `CREDENTIALS_MISSING`, `INVALID_REQUEST` and others.
        """
        raise NotImplementedError

    @start_capability("llm.generate", one_of=("objective", "messages"))
    def llm_generate(
        self,
        *,
        objective: str = "",
        context: str = "",
        system: str = "",
        max_tokens: int = 1024,
        temperature: float | None = None,
        output_schema: Mapping[str, object] | None = None,
        messages: Sequence[Mapping[str, object]] = (),
        images: Sequence[str] = (),
        tools: Sequence[ToolArgument] = (),
        tool_choice: Literal["auto", "none", "required"] | Mapping[str, object] = "auto",
        reasoning: Literal["none", "low", "medium", "high"] | int | None = None,
        stop: Sequence[str] = (),
        seed: int | None = None,
        top_p: float | None = None,
        confidence: bool = False,
        version: str | None = None,
        options: RunOptions | None = None,
    ) -> R:
        """Writes text, or JSON that matches a schema, for an objective and its material.

        Args:
            objective: what to write.
            context: material to work from, never followed as instructions; upstream fills it.
            system: standing instructions, above the objective.
            max_tokens: the most tokens the answer may have.
            temperature: how freely to choose words; only sent where given, as some models refuse
                it.
            output_schema: JSON schema that the answer must match; without recursion.
            messages: a conversation, in place of the objective; the last message is answered.
            images: ids of artifacts: PNG, JPEG, WebP or GIF pictures that the model is shown;
                upstream fills it.
            tools: functions that the model may ask you to call; in Python, annotated functions.
            tool_choice: whether the model may, must not or must ask for a tool, or for which tool.
            reasoning: how much the model may reason before its answer: a level, or tokens; they
                come on top of max_tokens.
            stop: texts that end the answer.
            seed: number that makes the choice of words repeatable, as far as the model can.
            top_p: share of probability from which words are chosen.
            confidence: whether to return the probability of the answer, by a model that reports it.
            version: version of the capability. Default: the newest.
            options: options of a run, such as `{"provider": "openai"}`.

        Raises:
            RequestError: `CREDENTIALS_MISSING`, `INVALID_REQUEST` and others.
        """
        raise NotImplementedError

    text_generate = start_capability("text.generate", one_of=("objective", "messages"))(
        llm_generate
    )

    @start_capability("speech.generate")
    def speech_generate(
        self,
        *,
        text: str,
        voice: str | None = None,
        speed: float = 1.0,
        version: str | None = None,
        options: RunOptions | None = None,
    ) -> R:
        """Speaks text as MP3, in the provider's default voice or a named one.

        Args:
            text: what to say; upstream fills it.
            voice: the provider's name of a voice; upstream, such as `voice.clone`, fills it.
            speed: 1 is the voice's own pace.
            version: version of the capability. Default: the newest.
            options: options of a run, such as `{"provider": "openai"}`.

        Raises:
            RequestError: `CREDENTIALS_MISSING`, `INVALID_REQUEST` and others.
        """
        raise NotImplementedError

    @start_capability("voice.clone")
    def voice_clone(
        self,
        *,
        reference_audio: str,
        name: str,
        version: str | None = None,
        options: RunOptions | None = None,
    ) -> R:
        """Makes a voice for later speech from reference audio, uploaded as an artifact.

        Args:
            reference_audio: id of an artifact with 10 s to 5 min of the voice: MP3, M4A or WAV, to
                20 MB.
            name: what you call the voice.
            version: version of the capability. Default: the newest.
            options: options of a run, such as `{"provider": "openai"}`.

        Raises:
            RequestError: `CREDENTIALS_MISSING`, `INVALID_REQUEST` and others.
        """
        raise NotImplementedError

    @start_capability("embed.generate", one_of=("texts", "artifact_id"))
    def embed_generate(
        self,
        *,
        texts: Sequence[str] = (),
        artifact_id: str | None = None,
        purpose: Literal["document", "query"] = "document",
        dimensions: int | None = None,
        version: str | None = None,
        options: RunOptions | None = None,
    ) -> R:
        """Makes vectors of texts, to search, group or compare them by meaning.

        Args:
            texts: the texts to embed.
            artifact_id: id of an artifact with the texts: a JSON list, JSON lines, or lines of
                text; upstream fills it.
            purpose: `document` for texts to be found, `query` for texts to find them by.
            dimensions: length of the vectors, if the model can shorten them; by default its own.
            version: version of the capability. Default: the newest.
            options: options of a run, such as `{"provider": "openai"}`.

        Raises:
            RequestError: `CREDENTIALS_MISSING`, `INVALID_REQUEST` and others.
        """
        raise NotImplementedError

    @start_capability("speech.transcribe")
    def speech_transcribe(
        self,
        *,
        audio: str,
        language: str | None = None,
        prompt: str = "",
        version: str | None = None,
        options: RunOptions | None = None,
    ) -> R:
        """Writes down what is said in an audio file, with the times of its sentences.

        Args:
            audio: id of an artifact with speech: MP3, M4A or WAV; upstream fills it.
            language: ISO 639-1 code of the spoken language; detected by default.
            prompt: names and terms that may occur, for models that take them.
            version: version of the capability. Default: the newest.
            options: options of a run, such as `{"provider": "openai"}`.

        Raises:
            RequestError: `CREDENTIALS_MISSING`, `INVALID_REQUEST` and others.
        """
        raise NotImplementedError

    @start_capability("text.rerank")
    def text_rerank(
        self,
        *,
        query: str,
        documents: Sequence[str],
        version: str | None = None,
        options: RunOptions | None = None,
    ) -> R:
        """Scores how well each of some documents answers a query.

        Args:
            query: the question that the documents may answer.
            documents: the documents to compare.
            version: version of the capability. Default: the newest.
            options: options of a run, such as `{"provider": "openai"}`.

        Raises:
            RequestError: `CREDENTIALS_MISSING`, `INVALID_REQUEST` and others.
        """
        raise NotImplementedError
