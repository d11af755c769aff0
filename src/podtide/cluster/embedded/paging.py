"""Tokens for the rest of a list: the instant the list shows, and where its next page starts."""

import base64

import msgspec
from msgspec import Struct

from podtide.cluster.port import Invalid


class Position(Struct, frozen=True, array_like=True):
    """Where a list is to go on."""

    version: int
    start: str


def to_token(position: Position) -> str:
    """The position as opaque text."""
    return base64.urlsafe_b64encode(msgspec.json.encode(position)).decode()


def from_token(token: str) -> Position:
    """The position a token stands for."""
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(token), type=Position)
    except (ValueError, msgspec.DecodeError) as error:
        raise Invalid(
            f"{token!r} is not the token of a list: hand back `more` of the page before as it is"
        ) from error
