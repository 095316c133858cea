"""Forms: a control for each field of a JSON schema, and text controls that reject keys."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from html import escape
from typing import Any

import ipywidgets

from toolkit.contract.base import JsonObject
from toolkit.contract.capabilities import list_required_fields
from toolkit.contract.key_shapes import looks_like_key
from toolkit.notebook.widget_base import make_labelled

LONG_TEXT_LENGTH = 400  # characters above which a field gets a text area instead of a line
MIN_KEY_LENGTH = 20  # characters of a key within other text, at least: `sk-learn` is no key
NOT_GIVEN = "(not given)"
_WORDS = re.compile(rf"[A-Za-z0-9+/=_\-]{{{MIN_KEY_LENGTH},}}")
_ADDRESSES = re.compile(r"https?://\S+")
ShowMessage = Callable[[str], None]


def holds_a_key(text: str) -> bool:
    """Check whether a word of a text is more likely a secret than anything else.

    >>> holds_a_key("write about sk-learn"), holds_a_key("use sk-live-0123456789abcdef")
    (False, True)
    """
    words = _WORDS.findall(_ADDRESSES.sub(" ", text))
    return any(looks_like_key(word) for word in words)


def guard_control(
    control: Any, tell: ShowMessage, is_key: Callable[[str], bool] = holds_a_key
) -> Any:
    """Make a text control clear itself if a key is typed or pasted into it; return it.

    Otherwise the saved notebook would contain the key.
    """

    def look(change: Mapping[str, Any]) -> None:
        if is_key(str(change["new"])):
            control.value = ""
            tell("The text looks like a key, so it was removed. Enter the name of a variable.")

    control.observe(look, "value")
    return control


class FormField:
    """A field of a form, for a member of an object: its control, its help, and its value."""

    def __init__(self, name: str, schema: JsonObject, required: bool, tell: ShowMessage) -> None:
        self.name = name
        self.required = required
        self._schema, self._nullable = _remove_null(schema)
        self.default = schema.get("default")
        self.fault = ipywidgets.HTML()
        label = name.replace("_", " ") + (" *" if required else "")
        self.control = self._build_control(label, tell)
        self.control.tooltip = str(schema.get("description", name))
        bounds = _describe_bounds(self._schema)
        hint = " ".join(filter(None, [str(schema.get("description", "")), bounds]))
        self.help = ipywidgets.HTML(f'<div class="tk-help">{escape(hint)}</div>')

    @property
    def type_name(self) -> str:
        """The JSON type of the value, such as `integer`; `readable` if the schema names no type."""
        return str(self._schema.get("type", "readable"))

    def _build_control(self, label: str, tell: ShowMessage) -> Any:
        schema, default = self._schema, self.default
        kind = schema.get("type")
        if "enum" in schema:
            choices = [(str(choice), choice) for choice in _as_list(schema["enum"])]
            options = choices if self.required else [(NOT_GIVEN, None), *choices]
            return make_labelled(ipywidgets.Dropdown, label, options=options, value=default)
        has_value = not self._nullable and (self.required or default is not None)
        if kind == "boolean" and has_value:
            return make_labelled(ipywidgets.Checkbox, label, value=bool(default), indent=True)
        if kind == "boolean":
            choices = [(NOT_GIVEN, None), ("yes", True), ("no", False)]
            return make_labelled(ipywidgets.Dropdown, label, options=choices, value=default)
        if kind in ("integer", "number") and has_value:
            return self._build_number_control(label, kind)
        lines = kind in ("array", "object") or _max_text_length(schema) > LONG_TEXT_LENGTH
        traits: dict[str, Any] = {"value": self._to_text(default)}
        if kind == "object" or (kind == "array" and not self._holds_texts):
            traits["placeholder"] = "JSON"
        elif kind == "array":
            traits["placeholder"] = "one entry per line"
        elif not self.required and default in (None, ""):
            traits["placeholder"] = NOT_GIVEN
        control = make_labelled(ipywidgets.Textarea if lines else ipywidgets.Text, label, **traits)
        if lines:
            control.rows = 3
        return guard_control(control, tell)

    def _build_number_control(self, label: str, kind: str) -> Any:
        low, high = self._schema.get("minimum"), self._schema.get("maximum")
        is_integer = kind == "integer"
        traits: dict[str, Any] = {"value": self.default if self.default is not None else low or 0}
        if low is None or high is None:
            return make_labelled(
                ipywidgets.IntText if is_integer else ipywidgets.FloatText, label, **traits
            )
        step = self._schema.get("multipleOf", 1 if is_integer else 0.1)
        bounded = ipywidgets.BoundedIntText if is_integer else ipywidgets.BoundedFloatText
        return make_labelled(bounded, label, min=low, max=high, step=step, **traits)

    @property
    def _holds_texts(self) -> bool:
        items = self._schema.get("items")
        return isinstance(items, Mapping) and items.get("type") == "string"

    def _to_text(self, value: object) -> str:
        if value is None:
            return ""
        if isinstance(value, str):
            return value
        if self._holds_texts and isinstance(value, list):
            return "\n".join(map(str, value))
        return json.dumps(value, ensure_ascii=False) if value != {} else ""

    def set_value(self, value: object) -> None:
        """Show a value; None shows the schema's default."""
        value = self.default if value is None else value
        if isinstance(self.control, ipywidgets.Text | ipywidgets.Textarea):
            self.control.value = self._to_text(value)
        elif value is not None:
            self.control.value = value

    def read_value(self) -> object:
        """Return the value as JSON, or None if the text is empty.

        Raises:
            ValueError: if the text does not have the field's type.
        """
        value = self.control.value
        if not isinstance(self.control, ipywidgets.Text | ipywidgets.Textarea):
            read: object = value
            return read
        text = str(value)
        kind = self._schema.get("type")
        if not text.strip():
            return None
        if kind in ("integer", "number"):
            return int(text) if kind == "integer" else float(text)
        if kind == "array" and self._holds_texts:
            return [line.strip() for line in text.splitlines() if line.strip()]
        if kind in ("array", "object"):
            json_value: object = json.loads(text)
            return json_value
        return text


class SchemaForm(ipywidgets.VBox):
    """A form made from the JSON schema of an object."""

    def __init__(self, schema: JsonObject, tell: ShowMessage) -> None:
        required = list_required_fields(schema)
        properties = schema.get("properties")
        self.fields = {
            name: FormField(name, member, name in required, tell)
            for name, member in (properties.items() if isinstance(properties, Mapping) else ())
            if _is_for_forms(member)
        }
        super().__init__(
            [
                ipywidgets.VBox([field.control, field.help, field.fault])
                for field in self.fields.values()
            ]
        )

    def set_values(self, values: Mapping[str, object]) -> None:
        """Show these values, and the defaults of other fields."""
        for name, field in self.fields.items():
            field.set_value(values.get(name))

    def read_values(self) -> JsonObject:
        """Return the entered values, except values that equal the schema's defaults.

        Raises:
            ValueError: if a field cannot be read; the form marks the field.
        """
        values: JsonObject = {}
        wrong = []
        for name, field in self.fields.items():
            field.fault.value = ""
            try:
                value = field.read_value()
            except ValueError:
                field.fault.value = _render_fault(f"is not {field.type_name}")
                wrong.append(name)
                continue
            if value is not None and (field.required or value != field.default):
                values[name] = value
        if wrong:
            raise ValueError(f"Correct {', '.join(wrong)} first.")
        return values

    def mark_faults(self, faults: Mapping[str, str]) -> None:
        """Show each fault next to the field of its name."""
        for name, field in self.fields.items():
            field.fault.value = _render_fault(faults[name]) if name in faults else ""


def _render_fault(fault: str) -> str:
    return f'<div class="tk-alert tk-help" role="alert">{escape(fault)}</div>'


def _remove_null(schema: JsonObject) -> tuple[JsonObject, bool]:
    choices = [choice for choice in _as_list(schema.get("anyOf")) if isinstance(choice, dict)]
    variants = [choice for choice in choices if choice.get("type") != "null"]
    if len(variants) == 1:
        return {**schema, **variants[0]}, len(variants) < len(choices)
    return schema, False


def _is_for_forms(schema: Mapping[str, Any]) -> bool:
    """Check whether a field has a control: conversations and tools are written in code."""
    return schema.get("x-planned", True) or schema.get("type") not in ("array", "object")


def _as_list(value: object) -> list[Any]:
    return list(value) if isinstance(value, Iterable) and not isinstance(value, str) else []


def _max_text_length(schema: JsonObject) -> int:
    longest = schema.get("maxLength")
    return longest if isinstance(longest, int) else 0


def _describe_bounds(schema: JsonObject) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        return f"({low} to {high})"
    if low is not None:
        return f"({low} or more)"
    return f"({high} or less)" if high is not None else ""
