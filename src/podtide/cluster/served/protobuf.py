"""The one body that kubectl insists on sending in protobuf: that of `kubectl create namespace NAME`.

A message is a row of fields, each a tag (the field's number and how its value is written) and a value. Kubernetes puts a
mark and an envelope around the object: {1: {1: apiVersion, 2: kind}, 2: object}. Of the namespace in it only the name is
read, and one that says anything else is refused rather than taken by half.
"""

from collections.abc import Iterator

from podtide.cluster.embedded.records import Document
from podtide.cluster.served.statuses import BadRequest, UnsupportedMediaType

PROTOBUF = "application/vnd.kubernetes.protobuf"

_MARK = b"k8s\x00"
_NUMBER, _TEXT = 0, 2
_MORE = 0x80
"""Set in every byte of a number but its last."""

Message = dict[int, int | bytes]


def read_namespace(body: bytes) -> Document:
    """The namespace that a body holds."""
    envelope = _message(body.removeprefix(_MARK) if body.startswith(_MARK) else None)
    kind, namespace = _message(envelope.get(1, b"")), _message(envelope.get(2, b""))
    metadata = _message(namespace.get(1, b""))
    rest = [_message(part) for number, part in namespace.items() if number != 1]
    if kind != {1: b"v1", 2: b"Namespace"} or metadata.keys() != {1} or any(rest):
        raise UnsupportedMediaType(
            f"in {PROTOBUF} only a namespace with nothing but a name is read here: send application/json "
            "(with kubectl: create -f)"
        )
    name = metadata[1]
    assert isinstance(name, bytes)
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name.decode(errors="replace")}}


def _message(data: int | bytes | None) -> Message:
    """The fields of a message that say something: neither 0 nor empty."""
    if not isinstance(data, bytes):
        raise BadRequest("the body is not Kubernetes protobuf: send application/json")
    return {number: value for number, value in _fields(data) if value}


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    position = 0
    while position < len(data):
        tag, position = _number(data, position)
        value, position = _number(data, position)
        if tag & 7 == _NUMBER:
            yield tag >> 3, value
        elif tag & 7 == _TEXT and position + value <= len(data):
            yield tag >> 3, data[position : position + value]
            position += value
        else:
            raise BadRequest("the body is truncated, or not Kubernetes protobuf: send application/json")


def _number(data: bytes, position: int) -> tuple[int, int]:
    """A number at a position, seven bits to a byte, and the position after it."""
    number = shift = 0
    while position < len(data):
        byte = data[position]
        number |= (byte & ~_MORE) << shift
        position, shift = position + 1, shift + 7
        if not byte & _MORE:
            return number, position
    raise BadRequest("the body is truncated, or not Kubernetes protobuf: send application/json")
