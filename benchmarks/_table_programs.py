"""Programs that label a table by batches of OpenAI, each in the way of its library.

Run `python benchmarks/_table_programs.py PROGRAM URL FOLDER ROWS` by a Python with the library. A
program that was killed is run again with the same arguments. At its end it writes the texts of all
rows to `results.json` in the folder, by the number of the row.
"""

import json
import os
import sys
import time
from pathlib import Path

MODEL, KEY = "gpt-6-luna", "sandbox-openai"
POLL_S = 0.2


def build_prompt(table: str, row: int) -> str:
    """Build the prompt of a row."""
    return f"Write a sentence about item {row} of the table {table}."


def build_lines(table: str, rows: int) -> str:
    """Build the file of a batch of OpenAI: a request for each row."""
    lines = [
        {
            "custom_id": str(n),
            "method": "POST",
            "url": "/v1/chat/completions",
            "body": {
                "model": MODEL,
                "max_completion_tokens": 60,
                "messages": [{"role": "user", "content": build_prompt(table, n)}],
            },
        }
        for n in range(rows)
    ]
    return "\n".join(map(json.dumps, lines))


def read_texts(content: str) -> dict[int, str]:
    """Read the texts in the file of results of a batch, by the numbers of their rows."""
    answers = [json.loads(line) for line in content.splitlines()]
    return {
        int(answer["custom_id"]): answer["response"]["body"]["choices"][0]["message"]["content"]
        for answer in answers
    }


def run_toolkit(url: str, folder: Path, rows: int) -> dict[int, str]:
    """Use `client.map` of this toolkit; its store finds the batch again."""
    from toolkit import Client
    from toolkit.settings import Settings, VendorSettings

    vendors = {"openai": VendorSettings(base_urls={"api": url})}
    settings = Settings(data_dir=folder / "data", vendors=vendors, batch_grace_s=1.0)
    with Client.local(settings=settings, sandbox=True) as client:
        labels = client.map(
            "llm.generate",
            [{"n": n} for n in range(rows)],
            objective=build_prompt(folder.name, 0).replace("item 0", "item {n}"),
            max_tokens=60,
            options={"when": "batch", "provider": f"openai/{MODEL}"},
            progress=False,
        )
    return dict(enumerate(labels["text"].dropna()))


def run_sdk(url: str, folder: Path, rows: int) -> dict[int, str]:
    """Use OpenAI's SDK as its guide does, and keep the id of the batch in a file."""
    import openai

    client = openai.OpenAI(base_url=url, api_key=KEY, max_retries=5)
    note = folder / "batch.txt"
    if not note.exists():
        data = build_lines(folder.name, rows).encode()
        file = client.files.create(file=("rows.jsonl", data), purpose="batch")
        created = client.batches.create(
            input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h"
        )
        note.write_text(created.id)
    while (batch := client.batches.retrieve(note.read_text())).status != "completed":
        time.sleep(POLL_S)
    text = client.files.content(str(batch.output_file_id)).text
    return read_texts(text)


def run_litellm(url: str, folder: Path, rows: int) -> dict[int, str]:
    """Use the batches of LiteLLM as its page does; it has no state of its own to continue from."""
    import litellm

    path = folder / "rows.jsonl"
    path.write_text(build_lines(folder.name, rows))
    place = {"custom_llm_provider": "openai", "api_base": url, "api_key": KEY}
    with path.open("rb") as data:
        file = litellm.create_file(file=data, purpose="batch", **place)
    batch = litellm.create_batch(
        completion_window="24h", endpoint="/v1/chat/completions", input_file_id=file.id, **place
    )
    while batch.status != "completed":
        time.sleep(POLL_S)
        batch = litellm.retrieve_batch(batch_id=batch.id, **place)
    text = litellm.file_content(file_id=batch.output_file_id, **place).text
    return read_texts(text)


def run_inspect(url: str, folder: Path, rows: int) -> dict[int, str]:
    """Use an evaluation of Inspect with batches; a killed one is retried from its log."""
    os.environ |= {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": KEY, "INSPECT_DISPLAY": "log"}
    from inspect_ai import Task, eval_retry, task
    from inspect_ai import eval as evaluate
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.log import list_eval_logs, read_eval_log
    from inspect_ai.model import BatchConfig, GenerateConfig
    from inspect_ai.solver import generate

    samples = [Sample(id=n, input=build_prompt(folder.name, n)) for n in range(rows)]
    config = BatchConfig(send_delay=0.2, tick=POLL_S, size=rows)

    @task
    def labels() -> Task:
        return Task(
            dataset=MemoryDataset(samples),
            solver=generate(),
            config=GenerateConfig(batch=config, max_tokens=60, max_connections=rows),
        )

    logs = list_eval_logs(str(folder / "logs"))
    if logs:
        (log,) = eval_retry(logs[0], log_dir=str(folder / "logs"))
    else:
        (log,) = evaluate(
            labels(),
            model=f"openai/{MODEL}",
            model_args={"responses_api": False},
            log_dir=str(folder / "logs"),
        )
    log = read_eval_log(log.location)
    return {int(sample.id): sample.output.completion for sample in log.samples or []}


def run_curator(url: str, folder: Path, rows: int) -> dict[int, str]:
    """Use Curator with batches; its cache folder keeps the batches that it has submitted."""
    os.environ |= {"CURATOR_CACHE_DIR": str(folder / "cache"), "OPENAI_API_KEY": KEY}
    os.environ |= {"TELEMETRY_ENABLED": "0", "CURATOR_DISABLE_RICH_DISPLAY": "1"}
    from bespokelabs import curator
    from datasets import Dataset

    class Labeller(curator.LLM):
        """A model that answers a row."""

        def prompt(self, row: dict[str, object]) -> str:
            """Return the prompt of a row."""
            return str(row["prompt"])

        def parse(self, row: dict[str, object], text: str) -> dict[str, object]:
            """Return the number of a row with its answer."""
            return {"n": row["n"], "text": text}

    model = Labeller(
        model_name=MODEL,
        batch=True,
        backend="openai",
        backend_params={"base_url": url, "batch_size": rows, "batch_check_interval": 1},
        generation_params={"max_completion_tokens": 60},
    )
    prompts = [{"n": n, "prompt": build_prompt(folder.name, n)} for n in range(rows)]
    answers = model(Dataset.from_list(prompts))
    answers = getattr(answers, "dataset", answers)
    return {int(answer["n"]): str(answer["text"]) for answer in answers}


PROGRAMS = {
    "toolkit": run_toolkit,
    "openai": run_sdk,
    "litellm": run_litellm,
    "inspect_ai": run_inspect,
    "curator": run_curator,
}


def main() -> None:
    """Run a program, and write its results."""
    program, url, folder, rows = sys.argv[1:]
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    texts = PROGRAMS[program](url, path, int(rows))
    (path / "results.json").write_text(json.dumps(texts))


if __name__ == "__main__":
    main()
