"""Calls of the built-in capabilities, each with the fields of its input as arguments.

Written by `scripts/capability_calls.py` from the capabilities' schemas.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Generic, Literal, TypeVar

from toolkit.client._options import check_fields
from toolkit.client._wire.messages import keep_given
from toolkit.contract.run_options import RunOptions

R = TypeVar("R")  # a run, or for the async client what is awaited for one


class CapabilityCalls(ABC, Generic[R]):
    """A call for each built-in capability; it starts a run.

    The fields of the input are arguments; `options` are those of a run, and `version` that of the
    capability, the newest by default.
    """

    @abstractmethod
    def _start(
        self,
        name: str,
        given: Mapping[str, object],
        version: str | None,
        options: RunOptions | None,
    ) -> R:
        """Start a run."""

    @check_fields
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
            version: the version of the capability; the newest by default.
            options: those of a run, such as `{"provider": "openai"}`.

        Raises:
            RequestError: `CREDENTIALS_MISSING`, `INVALID_REQUEST` and others.
        """
        given = keep_given(
            CapabilityCalls.image_generate,
            prompt=prompt,
            negative_prompt=negative_prompt,
            width=width,
            height=height,
            steps=steps,
            seed=seed,
        )
        return self._start("image.generate", given, version, options)

    @check_fields
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
            version: the version of the capability; the newest by default.
            options: those of a run, such as `{"provider": "openai"}`.

        Raises:
            RequestError: `CREDENTIALS_MISSING`, `INVALID_REQUEST` and others.
        """
        given = keep_given(
            CapabilityCalls.research_gather,
            topic=topic,
            language=language,
            max_sources=max_sources,
            synthesize=synthesize,
        )
        return self._start("research.gather", given, version, options)

    @check_fields
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
            version: the version of the capability; the newest by default.
            options: those of a run, such as `{"provider": "openai"}`.

        Raises:
            RequestError: `CREDENTIALS_MISSING`, `INVALID_REQUEST` and others.
        """
        given = keep_given(
            CapabilityCalls.composition_layout,
            title=title,
            subtitle=subtitle,
            body=body,
            bullets=bullets,
            footer=footer,
            kicker=kicker,
            image=image,
            template=template,
            theme=theme,
            width=width,
            height=height,
            format=format,
        )
        return self._start("composition.layout", given, version, options)

    @check_fields
    def llm_generate(
        self,
        *,
        objective: str,
        context: str = "",
        system: str = "",
        max_tokens: int = 1024,
        temperature: float | None = None,
        output_schema: Mapping[str, object] | None = None,
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
            version: the version of the capability; the newest by default.
            options: those of a run, such as `{"provider": "openai"}`.

        Raises:
            RequestError: `CREDENTIALS_MISSING`, `INVALID_REQUEST` and others.
        """
        given = keep_given(
            CapabilityCalls.llm_generate,
            objective=objective,
            context=context,
            system=system,
            max_tokens=max_tokens,
            temperature=temperature,
            output_schema=output_schema,
        )
        return self._start("llm.generate", given, version, options)

    @check_fields
    def text_generate(
        self,
        *,
        objective: str,
        context: str = "",
        system: str = "",
        max_tokens: int = 1024,
        temperature: float | None = None,
        output_schema: Mapping[str, object] | None = None,
        version: str | None = None,
        options: RunOptions | None = None,
    ) -> R:
        """Writes editorial copy; another name of `llm.generate`.

        Args:
            objective: what to write.
            context: material to work from, never followed as instructions; upstream fills it.
            system: standing instructions, above the objective.
            max_tokens: the most tokens the answer may have.
            temperature: how freely to choose words; only sent where given, as some models refuse
                it.
            output_schema: JSON schema that the answer must match; without recursion.
            version: the version of the capability; the newest by default.
            options: those of a run, such as `{"provider": "openai"}`.

        Raises:
            RequestError: `CREDENTIALS_MISSING`, `INVALID_REQUEST` and others.
        """
        given = keep_given(
            CapabilityCalls.text_generate,
            objective=objective,
            context=context,
            system=system,
            max_tokens=max_tokens,
            temperature=temperature,
            output_schema=output_schema,
        )
        return self._start("text.generate", given, version, options)

    @check_fields
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
            version: the version of the capability; the newest by default.
            options: those of a run, such as `{"provider": "openai"}`.

        Raises:
            RequestError: `CREDENTIALS_MISSING`, `INVALID_REQUEST` and others.
        """
        given = keep_given(
            CapabilityCalls.speech_generate,
            text=text,
            voice=voice,
            speed=speed,
        )
        return self._start("speech.generate", given, version, options)

    @check_fields
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
            version: the version of the capability; the newest by default.
            options: those of a run, such as `{"provider": "openai"}`.

        Raises:
            RequestError: `CREDENTIALS_MISSING`, `INVALID_REQUEST` and others.
        """
        given = keep_given(
            CapabilityCalls.voice_clone,
            reference_audio=reference_audio,
            name=name,
        )
        return self._start("voice.clone", given, version, options)
