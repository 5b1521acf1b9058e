"""The one exception that Pallascope raises for problems that are the user's to solve.

Standard library only: the host's server imports this before torch.
"""

from __future__ import annotations

# The closed list of `core/base/diagnostic.h`; its names are part of the interface.
KINDS = frozenset(
    """not_found not_readable not_a_zip missing_member wrong_package schema_version malformed_json
    malformed_graph unknown_dtype undefined_value storage_bounds symbolic_size unsupported invalid_argument
    unknown_command usage nothing_open host_unavailable host_died host_error cancelled timed_out""".split()
)


class PallascopeError(RuntimeError):
    """A diagnostic: what was wrong, where, and what would be right.

    kind     one of KINDS
    message  what was wrong, one sentence
    where    file, graph node or model line; may be empty
    remedy   what would be right, one sentence; may be empty
    """

    def __init__(self, kind: str, message: str, where: str = "", remedy: str = ""):
        self.kind, self.message, self.where, self.remedy = kind, message, where, remedy
        super().__init__(self.text())

    def text(self) -> str:
        """The diagnostic as one text, in the form of `to_string(Diagnostic)`."""
        text = f"{self.kind}: {self.message}"
        if self.where:
            text += f"\n  at: {self.where}"
        if self.remedy:
            text += f"\n  remedy: {self.remedy}"
        return text

    def as_dict(self) -> dict[str, str]:
        """The diagnostic as a JSON object with kind, message, where, remedy."""
        return {"kind": self.kind, "message": self.message, "where": self.where, "remedy": self.remedy}

    def __reduce__(self):
        return type(self), (self.kind, self.message, self.where, self.remedy)
