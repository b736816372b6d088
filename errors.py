"""Every error irgauge raises on purpose; the command line turns each into one line and an exit code."""

from __future__ import annotations


class IrgaugeError(Exception):
    """Base of all errors that are the input's or the caller's, not ours."""

    exit_code = 1


class ReadError(IrgaugeError):
    """The text is not MLIR that can be read exactly.

    `str()` gives `path:line:col: message`, then the source line with a caret, then a hint where there is one.
    """

    def __init__(
        self,
        message: str,
        *,
        path: str = "<text>",
        line: int = 0,
        column: int = 0,
        source_line: str = "",
        hint: str = "",
    ) -> None:
        self.message, self.path, self.line, self.column = message, path, line, column
        self.source_line, self.hint = source_line, hint
        super().__init__(message)  # what a copy from another process is made of

    def __str__(self) -> str:
        where = f"{self.path}:{self.line}:{self.column}" if self.line else self.path
        parts = [f"{where}: {self.message}"]
        if self.source_line:
            shown = self.source_line if len(self.source_line) <= 160 else self.source_line[:157] + "..."
            parts.append(f"  {shown}")
            if 0 < self.column <= len(shown):
                parts.append("  " + " " * (self.column - 1) + "^")
        if self.hint:
            parts.append(self.hint)
        return "\n".join(parts)

    def one_line(self) -> str:
        """Everything but the caret on one line: `path:line:col: message; at: source line; hint`."""
        where = f"{self.path}:{self.line}:{self.column}" if self.line else self.path
        near = "".join(c if c.isprintable() else "." for c in " ".join(self.source_line.split()))
        near = near if len(near) <= 80 else near[:77] + "..."
        return "; ".join(part for part in (f"{where}: {self.message}", near and f"at: {near}", self.hint) if part)


class UsageError(IrgaugeError):
    """The caller asked for something that does not exist: a target, a device, an option."""

    exit_code = 2


class ArtifactError(IrgaugeError):
    """A model file is not one of ours, is damaged, or does not fit this version."""


class SchemaError(IrgaugeError):
    """Named features do not match the model's schema."""


class LabelError(IrgaugeError):
    """A toolchain step failed on one program; `reason` is a short stable word for statistics."""

    def __init__(self, reason: str, detail: str = "") -> None:
        self.reason, self.detail = reason, detail
        super().__init__(f"{reason}: {detail}" if detail else reason)


class ToolMissingError(IrgaugeError):
    """A program or package that this step needs is not installed."""
