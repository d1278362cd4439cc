"""Credentials stay out of manifests, reports, logs and what other processes get."""

import re
from typing import Any

HIDDEN = "***"
SECRET = ("password", "passwd", "secret", "token", "credentials", "api_key", "apikey")  # endings
_IN_URL = re.compile(r"(?<=://)[^/\s@]*@")
_IN_TEXT = re.compile(rf"(?i)((?:{'|'.join(SECRET)})[=:]\s*)[^\s,]+")


def without_credentials(url: str) -> str:
    """Text with its URLs without user names and passwords.

    >>> without_credentials("postgresql://me:word@host/runs")
    'postgresql://host/runs'
    """
    return _IN_URL.sub("", url)


def hidden(value: Any) -> Any:
    """A value of JSON without credentials: in URLs, in options, in fields of secret names.

    >>> hidden({"token": "abc", "command": ["--params", "db.password=abc,seeds=2"]})
    {'token': '***', 'command': ['--params', 'db.password=***,seeds=2']}
    """
    match value:
        case str():
            return _IN_TEXT.sub(rf"\1{HIDDEN}", without_credentials(value))
        case dict():
            return {
                name: HIDDEN if str(name).lower().endswith(SECRET) else hidden(one)
                for name, one in value.items()
            }
        case list():
            return [hidden(one) for one in value]
    return value
