"""Settings: from code, variables and `toolkit.toml`, in this order."""

from pathlib import Path

import pytest

from toolkit.settings import Settings, SettingsError

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
    """Settings in a directory that has a `toolkit.toml`, and a variable set."""
    (tmp_path / "toolkit.toml").write_text(TOML, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOOLKIT_MAX_NODES", "8")
    monkeypatch.setenv("TOOLKIT_VENDORS__MINIMAX__MAX_CONCURRENT_CALLS", "3")
    return Settings(max_edges=9)


def test_the_nearest_wins(settings: Settings) -> None:
    """Given all three, then code wins over variables, and those over the file."""
    assert (settings.max_edges, settings.max_nodes, settings.timeout_s) == (9, 8, 30.0)
    assert settings.get_max_concurrent_calls("openai") == 2
    assert settings.get_max_concurrent_calls("minimax") == 3
    assert settings.get_max_concurrent_calls("runpod") == settings.max_concurrent_calls
    assert settings.vendors["openai"].models["text"] == {"economy": "small", "premium": "large"}


def test_deadlines_are_the_vendors_then_the_capabilitys(settings: Settings) -> None:
    """Given deadlines for a vendor and a capability, then each counts where it is given."""
    everyones = settings.resolve_timeouts("minimax", "llm.generate")
    assert (everyones.connect_s, everyones.total_s) == (5.0, 30.0)
    assert settings.resolve_timeouts("runpod", "image.generate").total_s == 600.0
    both = settings.resolve_timeouts("openai", "image.generate")
    assert (both.connect_s, both.total_s) == (1.0, 90.0)


def test_an_old_name_in_code_still_counts() -> None:
    """Given a setting by its old name in code, then it counts, and one warning says the new one."""
    with pytest.warns(DeprecationWarning, match="max_cooldown_wait_s") as warned:
        settings = Settings(patience_s=3)
    assert settings.max_cooldown_wait_s == 3.0
    assert len(warned) == 1
    assert warned[0].filename == __file__


def test_an_old_name_of_a_variable_still_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a variable with a setting's old name, then it counts, and one warning says so."""
    monkeypatch.setenv("TOOLKIT_PATIENCE_S", "4")
    with pytest.warns(DeprecationWarning, match="TOOLKIT_ variable.*max_cooldown_wait_s") as warned:
        settings = Settings()
    assert settings.max_cooldown_wait_s == 4.0
    assert len(warned) == 1


def test_an_old_name_in_the_file_still_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a file with a setting's old name, then it counts, and one warning says so."""
    (tmp_path / "toolkit.toml").write_text("patience_s = 5.0\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with pytest.warns(DeprecationWarning, match="toolkit.toml.*max_cooldown_wait_s") as warned:
        settings = Settings()
    assert settings.max_cooldown_wait_s == 5.0
    assert len(warned) == 1


def test_the_nearest_wins_by_either_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a setting by both names, then the source decides, and in one source the new name."""
    (tmp_path / "toolkit.toml").write_text("max_cooldown_wait_s = 5.0\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOOLKIT_PATIENCE_S", "4")
    with pytest.warns(DeprecationWarning, match="`patience_s`"):
        assert Settings().max_cooldown_wait_s == 4.0
    with pytest.warns(DeprecationWarning, match="`patience_s`"):
        assert Settings(max_cooldown_wait_s=2).max_cooldown_wait_s == 2.0
    monkeypatch.setenv("TOOLKIT_MAX_COOLDOWN_WAIT_S", "6")
    with pytest.warns(DeprecationWarning, match="`patience_s`"):
        assert Settings().max_cooldown_wait_s == 6.0


def test_a_bad_value_under_an_old_name_is_refused() -> None:
    """Given a value that cannot be used by its old name, then the refusal names the new one."""
    with pytest.warns(DeprecationWarning, match="code"), pytest.raises(SettingsError) as refused:
        Settings(patience_s=-1)
    assert [detail.path for detail in refused.value.details] == ["max_cooldown_wait_s"]
