"""Text as it may be shown: in a console, in Markdown, and without credentials.

``tables.csv`` escapes for CSV.
"""

import re
from typing import Any

# What GitHub takes for a command to its runner where a line begins with it.
COMMANDS = ("::", "##[")
MARKDOWN = re.compile(r"([\\`*\[\]<>|~])")
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


def for_console(line: str) -> str:
    r"""A line for a terminal or a log: one line, without control and invisible characters.

    >>> print(for_console("f\n::error::\x1b[2K"))
    f\n::error::\x1b[2K
    >>> print(for_console("::stop-commands::x"))
    \::stop-commands::x
    """
    if not line.isprintable():
        line = "".join(
            sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in line
        )
    return f"\\{line}" if line.lstrip().startswith(COMMANDS) else line


def for_console_lines(text: str) -> str:
    """Several lines, such as those of an error."""
    return "\n".join(map(for_console, text.split("\n")))


def for_markdown(text: str) -> str:
    r"""Text within a line or a cell of Markdown that shows as it is.

    >>> print(for_markdown("a | 0.9 <b>"))
    a \| 0.9 \<b\>
    """
    return MARKDOWN.sub(r"\\\1", for_console(text))


def as_code(text: str) -> str:
    """A name as code in Markdown, which has no escapes in it."""
    return f"`{for_console(text).replace('`', chr(39))}`"


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
            text = _BEARER.sub(rf"\1 {HIDDEN}", _IN_URL.sub("", value))
            return _IN_TEXT.sub(rf"\1{HIDDEN}", text)
        case dict():
            return {
                name: HIDDEN if _SECRET_NAME.fullmatch(str(name)) else hidden(field)
                for name, field in value.items()
            }
        case list():
            return [hidden(element) for element in value]
    return value
