"""The `runpod-jobs` wire: queueing, polling and cancelling the jobs of image workers."""

import base64
import re
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import BaseRoute

from toolkit.sandbox.chat_tools import ChatTool, NamedChoice, build_calls, make_offer
from toolkit.sandbox.event_streams import StreamOptions, stream_completion
from toolkit.sandbox.json_http import (
    JsonObject,
    RefusalError,
    RequestBody,
    build_checked_routes,
    list_faults,
    read_body,
    refuse_first_fault,
)
from toolkit.sandbox.pictures.sight import count_patches
from toolkit.sandbox.state import EPOCH, SandboxState, get_effects, get_request_digest, mark_billed
from toolkit.sandbox.text.chat import ChatMessage, generate_reply, parse_turns
from toolkit.sandbox.vendor_paths import SANDBOX_KEYS
from toolkit.sandbox.wires.runpod import RunPodAccount
from toolkit.sandbox.wires.runpod_images import (
    LinkedPicture,
    PictureGallery,
    PictureInput,
    build_picture_url,
)

# The public endpoints, and the kind of worker of each.
PUBLIC_ENDPOINTS = {
    "black-forest-labs-flux-1-dev": "flux",
    "black-forest-labs-flux-1-schnell": "schnell",
    "sandbox-worker-sdxl": "sdxl",
    "qwen3-32b-awq": "text",
}
_USD_PER_MEGAPIXEL = {"flux": 0.02, "schnell": 0.0024}
_MAX_STEPS = {"flux": 50, "schnell": 8}
_FINAL_STATUSES = ("COMPLETED", "FAILED", "CANCELLED", "TIMED_OUT")
_COLD_MS, _WARM_MS = 8000, 180
_MAX_BODY_MB = {"run": 10, "runsync": 20}
_RESULT_RETENTION_S = {"run": 30 * 60, "runsync": 60}
SERVED_MODEL = "meta-llama/Llama-4-sandbox"
# The models of the public endpoints that generate text; they reason first, unless told not to.
PUBLIC_MODELS = {"qwen3-32b-awq": "Qwen/Qwen3-32B-AWQ"}
_THINKING_TOKENS = 150
_count_picture = partial(count_patches, patch=28, longest=4_096, most=1_024)


@dataclass(slots=True)
class SimulatedJob:
    """A job; it advances by a step each time it is polled."""

    id: str
    endpoint: str
    worker: str
    payload: JsonObject
    submitted_by: str
    delay_ms: int
    execution_ms: int
    price_factor: float = 1.0
    status: str = "IN_QUEUE"
    output: object = None
    error: str = ""
    ended_at: float | None = None


@dataclass(slots=True)
class _JobQueue:
    """The jobs of the account, and the endpoints whose worker is running."""

    jobs: dict[str, SimulatedJob] = field(default_factory=dict)
    warm: set[str] = field(default_factory=set)


class JobRequest(RequestBody, extra="ignore"):
    """The body of a request for a job."""

    input: JsonObject


class TemplateOptions(RequestBody, extra="ignore"):
    """Options of the template that makes a prompt of a conversation."""

    enable_thinking: bool | None = True


class WorkerChatRequest(RequestBody, extra="ignore"):
    """The body of a request for a chat completion, to a worker that has such a wire."""

    model: str
    messages: list[ChatMessage]
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    chat_template_kwargs: TemplateOptions | None = None
    tools: list[ChatTool] | None = None
    tool_choice: Literal["auto", "none", "required"] | NamedChoice | None = None
    stop: str | list[str] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None


def refuse(status: int, message: str) -> RefusalError:
    """Make a refusal in the vendor's format."""
    return RefusalError({"error": message}, status)


_refuse_body = refuse_first_fault(partial(refuse, 400), "the body is not a JSON object")


class _RunPodJobsWire:
    def __init__(self, state: SandboxState) -> None:
        self._state = state
        self._queue = state.get_records(_JobQueue)
        self._account = state.get_records(RunPodAccount)
        self._gallery = state.get_records(PictureGallery)

    async def submit(self, request: Request) -> Response:
        job = await self._submit_job(request, "run")
        return JSONResponse({"id": job.id, "status": job.status})

    async def run_sync(self, request: Request) -> Response:
        wait = request.query_params.get("wait", "90000")
        if not wait.isdigit() or not 1000 <= int(wait) <= 300_000:
            raise refuse(400, "wait must be between 1000 and 300000 milliseconds")
        job = await self._submit_job(request, "runsync")
        # Time is simulated, so a short wait ends before a cold worker has begun.
        if int(wait) >= job.delay_ms:
            job.status = "IN_PROGRESS"
        if int(wait) >= job.delay_ms + job.execution_ms:
            await self._finish_job(job, request)
        return JSONResponse(_describe_job(job))

    async def get_status(self, request: Request) -> Response:
        job = self._find_job(request)
        if job.status == "IN_QUEUE":
            job.status = "IN_PROGRESS"
        elif job.status == "IN_PROGRESS":
            await self._finish_job(job, request)
        return JSONResponse(_describe_job(job))

    async def cancel(self, request: Request) -> Response:
        job = self._find_job(request)
        if job.status not in _FINAL_STATUSES:
            self._end_job(job, "CANCELLED")
        return JSONResponse({"id": job.id, "status": job.status})

    async def retry(self, request: Request) -> Response:
        job = self._find_job(request)
        if job.status not in ("FAILED", "TIMED_OUT"):
            raise refuse(400, "only a failed or timed out job can be retried")
        job.status, job.error, job.ended_at = "IN_QUEUE", "", None
        return JSONResponse({"id": job.id, "status": job.status})

    async def get_health(self, request: Request) -> Response:
        endpoint = request.path_params["endpoint"]
        self._find_worker(endpoint)
        states = [j.status for j in self._queue.jobs.values() if j.endpoint == endpoint]
        names = {"completed": "COMPLETED", "failed": "FAILED", "inProgress": "IN_PROGRESS"}
        jobs = {name: states.count(status) for name, status in names.items()}
        jobs |= {"inQueue": states.count("IN_QUEUE"), "retried": 0}
        busy = min(1, states.count("IN_PROGRESS"))
        warm = int(endpoint in self._queue.warm)
        workers = {"idle": max(0, warm - busy), "initializing": 0, "ready": warm}
        workers |= {"running": busy, "throttled": 0, "unhealthy": 0}
        return JSONResponse({"jobs": jobs, "workers": workers})

    async def list_models(self, request: Request) -> Response:
        endpoint = request.path_params["endpoint"]
        self._find_worker(endpoint)
        model = PUBLIC_MODELS.get(endpoint, SERVED_MODEL)
        served = {"id": model, "object": "model", "created": EPOCH, "owned_by": "vllm"}
        return JSONResponse({"object": "list", "data": [served]})

    async def complete_chat(self, request: Request) -> Response:
        """Answer as a worker that speaks the OpenAI-compatible wire; any endpoint has one."""
        endpoint = request.path_params["endpoint"]
        self._find_worker(endpoint)
        served = PUBLIC_MODELS.get(endpoint, SERVED_MODEL)
        body = await read_body(request, WorkerChatRequest, _refuse_body)
        if body.model != served:
            raise refuse(400, f"the served model is {served}")
        template = body.chat_template_kwargs or TemplateOptions()
        thinks = endpoint in PUBLIC_MODELS and bool(template.enable_thinking)
        try:
            turns, offer = parse_turns(body.messages), make_offer(body.tools, body.tool_choice)
        except (KeyError, TypeError, ValueError) as error:
            raise refuse(400, str(error)) from None
        reply = generate_reply(
            turns,
            max_tokens=body.max_tokens or body.max_completion_tokens,
            reasoning_tokens=_THINKING_TOKENS if thinks else 0,
            offer=offer,
            stop=[body.stop] if isinstance(body.stop, str) else body.stop or (),
            count_picture=_count_picture,
        )
        mark_billed(request)
        digest = get_request_digest(request)
        text = f"<think>\n{reply.reasoning}\n</think>\n\n{reply.text}" if thinks else reply.text
        head = {
            "id": f"chatcmpl-{digest[:29]}",
            "created": EPOCH,
            "model": served if "sandbox" in served else f"{served}-sandbox",
        }
        usage = {
            "prompt_tokens": reply.prompt_tokens,
            "completion_tokens": reply.completion_tokens,
            "total_tokens": reply.prompt_tokens + reply.completion_tokens,
        }
        if body.stream:
            with_usage = body.stream_options is not None and body.stream_options.include_usage
            head["object"] = "chat.completion.chunk"
            calls = build_calls(reply, digest)
            events = stream_completion(head, reply, usage if with_usage else None, text, calls)
            return StreamingResponse(events, media_type="text/event-stream")
        message: JsonObject = {"role": "assistant", "content": None if reply.calls else text}
        if reply.calls:
            message["tool_calls"] = build_calls(reply, digest)
        choices = [{"index": 0, "message": message, "finish_reason": reply.finish}]
        answer = {**head, "object": "chat.completion", "choices": choices, "usage": usage}
        return JSONResponse(answer)

    async def _submit_job(self, request: Request, via: str) -> SimulatedJob:
        endpoint = request.path_params["endpoint"]
        worker = self._find_worker(endpoint)
        if worker == "text":
            raise refuse(400, "the simulation supports only its OpenAI-compatible path")
        if len(await request.body()) > _MAX_BODY_MB[via] * 1024 * 1024:
            raise refuse(400, f"the body is larger than {_MAX_BODY_MB[via]} MB")
        payload = (await read_body(request, JobRequest, _refuse_body)).input
        digest = self._state.compute_fresh_digest("job", get_request_digest(request))
        identity = f"{digest[:8]}-{digest[8:12]}-4{digest[13:16]}-8{digest[17:20]}-{digest[20:32]}"
        cold = endpoint not in self._queue.warm
        job = SimulatedJob(
            id=("sync-" if via == "runsync" else "") + identity + "-u1",
            endpoint=endpoint,
            worker=worker,
            payload=payload,
            submitted_by=via,
            delay_ms=(_COLD_MS if cold else _WARM_MS) + int(digest[:2], 16),
            execution_ms=_compute_execution_ms(payload),
            price_factor=get_effects(request).price_factor,
        )
        self._queue.jobs[job.id] = job
        mark_billed(request)
        return job

    def _find_worker(self, endpoint: str) -> str:
        """Find the kind of worker that serves an endpoint."""
        if endpoint in PUBLIC_ENDPOINTS:
            return PUBLIC_ENDPOINTS[endpoint]
        config = self._account.items["serverless"].get(endpoint)
        if config is None:
            raise refuse(404, "endpoint not found")
        return choose_worker(str(config.get("image", "")))

    def _find_job(self, request: Request) -> SimulatedJob:
        endpoint, identity = request.path_params["endpoint"], request.path_params["job"]
        self._find_worker(endpoint)
        job = self._queue.jobs.get(identity)
        if job is None or job.endpoint != endpoint:
            raise refuse(404, "job not found")
        retention_s = _RESULT_RETENTION_S[job.submitted_by]
        if job.ended_at is not None and self._state.clock() - job.ended_at > retention_s:
            raise refuse(404, "job not found")
        return job

    async def _finish_job(self, job: SimulatedJob, request: Request) -> None:
        job.status = "IN_PROGRESS"
        fault = check_input(job.payload, job.worker)
        if fault:
            job.error = fault
            self._end_job(job, "FAILED")
            return
        output: object
        if job.worker in _USD_PER_MEGAPIXEL:
            output = self._store_picture(job, request)
        else:
            output = await run_in_threadpool(run_worker, job.payload, job.worker, self._state.seed)
        if job.status == "IN_PROGRESS":  # a cancel may have come while the worker drew
            job.output = output
            self._end_job(job, "COMPLETED")

    def _store_picture(self, job: SimulatedJob, request: Request) -> JsonObject:
        """Store a picture; return a public endpoint's output: its URL, and its cost."""
        spec = PictureInput.model_validate(job.payload)
        name = self._state.compute_digest("picture", job.id)[:20]
        seed, made_at = spec.choose_seed(self._state.seed), self._state.clock()
        self._gallery.pictures[name] = LinkedPicture(spec, seed, made_at)
        price = _USD_PER_MEGAPIXEL[job.worker] * job.price_factor
        cost = spec.width * spec.height / 1_000_000 * price
        return {"image_url": build_picture_url(request, name), "cost": round(cost, 6)}

    def _end_job(self, job: SimulatedJob, status: str) -> None:
        job.status = status
        job.ended_at = self._state.clock()
        self._queue.warm.add(job.endpoint)


def choose_worker(image: str) -> str:
    """Choose the kind of worker of a container, by the name of its image."""
    return next((kind for kind in ("comfyui", "flux") if kind in image.lower()), "sdxl")


def build_routes(state: SandboxState) -> list[BaseRoute]:
    """Build the routes of the vendor's paths."""
    wire = _RunPodJobsWire(state)
    at = "/v2/{endpoint}"
    return build_checked_routes(
        _check_key,
        (
            ("POST", f"{at}/run", wire.submit),
            ("POST", f"{at}/runsync", wire.run_sync),
            ("GET POST", f"{at}/status/{{job}}", wire.get_status),
            ("POST", f"{at}/cancel/{{job}}", wire.cancel),
            ("POST", f"{at}/retry/{{job}}", wire.retry),
            ("GET", f"{at}/health", wire.get_health),
            ("GET", f"{at}/openai/v1/models", wire.list_models),
            ("POST", f"{at}/openai/v1/chat/completions", wire.complete_chat),
        ),
    )


def _check_key(request: Request) -> None:
    # This API also accepts the key without the word Bearer (the vendor's operation reference).
    header = request.headers.get("authorization", "")
    if re.sub(r"^bearer\s+", "", header, flags=re.I) != SANDBOX_KEYS["RUNPOD_API_KEY"]:
        raise refuse(401, "the API key is missing or not valid")


def _describe_job(job: SimulatedJob) -> JsonObject:
    description: JsonObject = {"id": job.id, "status": job.status}
    if job.status != "IN_QUEUE":
        description |= {"delayTime": job.delay_ms, "workerId": f"worker{job.endpoint[:6]}"}
    if job.status in ("COMPLETED", "FAILED"):
        description["executionTime"] = job.execution_ms
    if job.status == "COMPLETED":
        description["output"] = job.output
    if job.error:
        description["error"] = job.error
    return description


def _compute_execution_ms(payload: JsonObject) -> int:
    try:
        spec = PictureInput.model_validate(payload)
    except ValidationError:
        spec = PictureInput.model_construct(prompt="")
    return 400 + int(spec.width * spec.height / 1_048_576 * spec.num_inference_steps * 90)


def check_input(payload: JsonObject, worker: str) -> str:
    """Check a worker's input; return the reason of a refusal, or an empty text."""
    if worker == "comfyui":
        return "" if isinstance(payload.get("workflow"), dict) else "Missing 'workflow' parameter"
    try:
        spec = PictureInput.model_validate(payload)
    except ValidationError as error:
        fault = list_faults(error)[0]
        return f"{fault}."
    step = 64 if worker in _USD_PER_MEGAPIXEL else 8
    if spec.width % step or spec.height % step:
        return f"width and height must be in steps of {step}."
    max_steps = _MAX_STEPS.get(worker, 150)
    if "num_inference_steps" in spec.model_fields_set and spec.num_inference_steps > max_steps:
        return f"num_inference_steps must be at most {max_steps}."
    return ""


def run_worker(payload: JsonObject, worker: str, sandbox_seed: int) -> object:
    """Draw the pictures, and return them in the format of this kind of worker."""
    if worker == "comfyui":
        spec = PictureInput.model_construct(prompt=_extract_workflow_prompt(payload))
        picture = _encode(spec.draw(sandbox_seed))
        return {"images": [{"filename": "sandbox_00001_.png", "type": "base64", "data": picture}]}
    spec = PictureInput.model_validate(payload)
    seed = spec.choose_seed(sandbox_seed)
    drawn = (spec.draw(seed + place) for place in range(spec.num_images))
    pictures = [f"data:image/png;base64,{_encode(data)}" for data in drawn]
    return {"images": pictures, "image_url": pictures[0], "seed": seed}


def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _extract_workflow_prompt(payload: JsonObject) -> str:
    texts: list[str] = []
    for node in payload["workflow"].values():
        inputs = node.get("inputs", {}) if isinstance(node, dict) else {}
        values = inputs.values() if isinstance(inputs, dict) else ()
        texts += [value for value in values if isinstance(value, str)]
    return max(texts, key=len, default="an abstract landscape")
