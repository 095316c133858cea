"""Settings: from code, variables and `toolkit.toml`, in this order."""

from pathlib import Path

import pytest

from toolkit.settings import Settings

TOML = """
max_nodes = 7
timeout_s = 30.0
[timeouts."image.generate"]
total_s = 600.0
[vendors.openai]
base_urls = { api = "http://localhost:11434/v1" }
max_concurrent_calls = 2
[vendors.openai.models]
text = { economy = "small", premium = "large" }
[vendors.openai.timeouts]
connect_s = 1.0
total_s = 90.0
"""


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Settings in a directory with a `toolkit.toml`, and with variables."""
    (tmp_path / "toolkit.toml").write_text(TOML, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOOLKIT_MAX_NODES", "8")
    monkeypatch.setenv("TOOLKIT_VENDORS__MINIMAX__MAX_CONCURRENT_CALLS", "3")
    return Settings(max_edges=9)


def test_code_overrides_variables_and_file(settings: Settings) -> None:
    """Given all three, then code overrides variables, and variables override the file."""
    assert (settings.max_edges, settings.max_nodes, settings.timeout_s) == (9, 8, 30.0)
    assert settings.get_max_concurrent_calls("openai") == 2
    assert settings.get_max_concurrent_calls("minimax") == 3
    assert settings.get_max_concurrent_calls("runpod") == settings.max_concurrent_calls
    assert settings.vendors["openai"].models["text"] == {"economy": "small", "premium": "large"}


def test_timeouts_of_a_vendor_override_the_capability(settings: Settings) -> None:
    """Given timeouts of a vendor and of a capability, then the vendor's take precedence."""
    defaults = settings.resolve_timeouts("minimax", "llm.generate")
    assert (defaults.connect_s, defaults.total_s) == (5.0, 30.0)
    assert settings.resolve_timeouts("runpod", "image.generate").total_s == 600.0
    both = settings.resolve_timeouts("openai", "image.generate")
    assert (both.connect_s, both.total_s) == (1.0, 90.0)
