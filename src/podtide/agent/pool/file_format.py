"""The format of a file that an agent keeps, stated in its first record, and refused where a newer podtide wrote it.

An agent that used a file which it understands only in part would lose the rest, and overwrite it. So it ends before it
changes anything. A damaged file is handled differently: no other version could read it either.
"""

from msgspec import Struct

from podtide import __version__
from podtide.core.errors import FixError


class NewerFormat(FixError):
    """A newer podtide wrote the file, in a format that this one cannot read."""


class FileFormat(Struct, frozen=True):
    """The part of a first record that every podtide can read."""

    format: int = 1
    """Files from before they stated one are of the first."""
    podtide: str = ""
    """The version of the podtide that wrote the record; "" for one that did not say."""

    def refuse_newer(self, name: str, known: int, way_out: str) -> None:
        """Raise NewerFormat if the file `name` has a format later than `known`; `way_out` is what else can be done."""
        if self.format <= known:
            return
        writer = f"podtide {self.podtide}" if self.podtide else "a newer podtide"
        wanted = f"podtide {self.podtide} or newer" if self.podtide else "a newer podtide"
        raise NewerFormat(
            f"{name} in the state directory was written by {writer} in format {self.format}, and this podtide "
            f"{__version__} reads up to format {known}: install {wanted}, or {way_out}; nothing was changed"
        )
