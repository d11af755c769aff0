"""Takes secrets out of what a support bundle contains.

Secret objects are never read at all. What is left is text of other programs: logs, configurations, annotations. From that
go the secrets that this command knows itself, values under names that tell of a secret, values of environment variables,
and what has the form of a token, a key or a password in a URL. It rather takes out too much.
"""

import re
from collections.abc import Iterable
from typing import Any

REDACTED = "REDACTED"

_SECRET_NAME = re.compile(
    r"token|passw|secret|authori[sz]ation|credential|private.?key|api.?key", re.IGNORECASE
)
_COPIED_OBJECT = "kubectl.kubernetes.io/last-applied-configuration"
"""An annotation with a whole object as text, its environment included."""
_PATTERNS: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(
            r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL
        ),
        REDACTED,
    ),
    (re.compile(r"\beyJ[\w-]{8,}\.[\w-]+(?:\.[\w-]*)?"), REDACTED),
    (re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{6,}"), rf"\1 {REDACTED}"),
    (re.compile(r"(://[^\s:/@]*:)[^\s@/]+@"), rf"\1{REDACTED}@"),
    (
        re.compile(
            r"(?i)([\w.-]*(?:token|passw(?:or)?d|secret|credential|api[_-]?key|private[_-]?key)[\w.-]*[\"']?\s*[=:]\s*)"
            r"(\"[^\"]*\"|'[^']*'|[^\s,;}\]]+)"
        ),
        rf"\1{REDACTED}",
    ),
)


class Redactor:
    """Takes out what is known to be secret, and what looks so."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        """`known` are secrets word for word, such as the token of this command."""
        self._known = sorted({word for word in known if word.strip()}, key=len, reverse=True)

    def text(self, text: str) -> str:
        """The text without secrets."""
        for word in self._known:
            text = text.replace(word, REDACTED)
        for pattern, replacement in _PATTERNS:
            text = pattern.sub(replacement, text)
        return text

    def document(self, value: Any) -> Any:
        """A document of JSON without secrets: what stands under a telling name goes, whatever it is."""
        if isinstance(value, dict):
            is_variable = "name" in value and "value" in value and isinstance(value["value"], str)
            return {
                self.text(str(key)): REDACTED
                if key == _COPIED_OBJECT
                or (is_variable and key == "value")
                or (_SECRET_NAME.search(str(key)) and isinstance(each, str) and each)
                else self.document(each)
                for key, each in value.items()
            }
        if isinstance(value, list | tuple):
            return [self.document(each) for each in value]
        return self.text(value) if isinstance(value, str) else value
