"""A user's text as it may stand in a console and in Markdown; ``tables.csv`` escapes for CSV."""

import re

# What GitHub takes for a command to its runner where a line begins with it.
COMMANDS = ("::", "##[")
MARKDOWN = re.compile(r"([\\`*\[\]<>|~])")


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
