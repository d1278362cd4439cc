"""Credentials stay out of manifests, reports, logs and what other processes get."""

import re
from typing import Any

HIDDEN = "***"
# Endings of names of secrets, also with "-" or nothing instead of "_"; the short ones are words.
LONG = (
    "password", "passwd", "passphrase", "secret", "secret_key", "access_key", "private_key",
    "token", "credentials", "api_key", "x_amz_signature",
)  # fmt: skip
SHORT = ("auth", "authorization", "pwd", "sig")
_LONG, _SHORT = ("|".join(names).replace("_", "[_-]?") for names in (LONG, SHORT))
_NAME = rf"(?:{_LONG}|(?<![^\W_])(?:{_SHORT}))"
_SECRET_NAME = re.compile(rf"(?i).*{_NAME}")
_IN_URL = re.compile(r"(?<=://)[^/\s?#]*@")
_BEARER = re.compile(r"(?i)\b(bearer|basic) [\w.~+/=-]{8,}")
_IN_TEXT = re.compile(
    rf"""(?i)({_NAME}["']?\s*[=:]\s*)("[^"]*"|'[^']*'|(?!bearer|basic)[^\s,'"]+)"""
)


def without_credentials(url: str) -> str:
    """Text with its URLs without user names and passwords.

    >>> without_credentials("postgresql://me:w@rd@host/runs")
    'postgresql://host/runs'
    """
    return _IN_URL.sub("", url)


def hidden(value: Any) -> Any:
    """A value of JSON without credentials: in URLs, in options, in fields of secret names.

    >>> hidden({"aws_secret_access_key": "abc", "command": ["--params", "db.pwd=abc,seeds=2"]})
    {'aws_secret_access_key': '***', 'command': ['--params', 'db.pwd=***,seeds=2']}
    """
    match value:
        case str():
            text = _BEARER.sub(rf"\1 {HIDDEN}", without_credentials(value))
            return _IN_TEXT.sub(rf"\1{HIDDEN}", text)
        case dict():
            return {
                name: HIDDEN if _SECRET_NAME.fullmatch(str(name)) else hidden(field)
                for name, field in value.items()
            }
        case list():
            return [hidden(element) for element in value]
    return value
