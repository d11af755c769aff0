"""podtide's own image, built from deploy/Dockerfile as it is."""

import os
import re
from pathlib import Path

from container_images.cache import Turn, images_directory, made, say_on_stderr
from container_images.context import (
    DOCKERFILE,
    IGNORED,
    ROOT,
    SourcesChanged,
    copy_sources,
    sources_hash,
    version,
)
from container_images.workshop import workshop, workshop_hash
from control_plane.go_toolchain import Say

KEPT = 5
"""Images of about 300 MB each: branches that are worked on side by side do not throw out each other's, nor the one that upgrades
begin with."""

BUILD = r"""
name=$1 archive=$2 dockerfile=/mnt/context/$3 ignored=/mnt/context/$4
shift 4
certificates=/etc/ssl/certs/ca-certificates.crt
build() {
    buildah build --pull-never --layers --file "$dockerfile" --ignorefile "$ignored" \
        --volume "$certificates:$certificates:ro" \
        --volume /run/pip.conf:/etc/pip.conf:ro \
        --volume /run/uv.toml:/etc/uv/uv.toml:ro \
        "$@" /mnt/context
}
buildah rm --all # of a build that was killed
build --tag "$name"
# A stage that has a name keeps its layers when those of earlier builds go.
for stage; do build --target "$stage" --tag "localhost/stage-$stage"; done
buildah push --quiet "$name" "docker-archive:/mnt/$archive:$name"
buildah rmi --prune
"""


def podtide_name(tag: str = "") -> str:
    """What a kubelet makes of `podtide:<tag>`, which is the chart's appVersion unless told otherwise."""
    return f"docker.io/library/podtide:{tag or version()}"


def podtide_image(say: Say = say_on_stderr, root: Path = ROOT, tag: str = "") -> Path:
    """An archive with the image of a repository's files as they are now. CannotBuild says what it lacks."""
    while True:
        try:
            return _image_of(sources_hash(root), say, root, tag or version(root))
        except SourcesChanged:
            say("a source was edited meanwhile: starting again")


def _image_of(sources: str, say: Say, root: Path, tag: str) -> Path:
    def build(turn: Turn, archive: Path) -> None:
        there = workshop(turn)
        context = turn.partial / "context"
        copy_sources(context, expected=sources, root=root)
        turn.say(f"building {name} into {target}")
        stages = re.findall(r"^FROM \S+ AS (\w+)$", (context / DOCKERFILE).read_text(), flags=re.MULTILINE)
        there.run(BUILD, name, archive.name, str(DOCKERFILE), str(IGNORED), *stages, turn=turn, what=name)
        for old in _by_age(turn.cache)[KEPT - 1 :]:
            old.unlink()

    name = podtide_name(tag)
    target = images_directory() / f"podtide-{tag}-{sources[:16]}-{workshop_hash()}.tar"
    image = made(target.name, say, build)
    os.utime(image)
    return image


def _by_age(cache: Path) -> list[Path]:
    """Images of podtide, the one that was asked for last first."""
    return sorted(cache.glob("podtide-*.tar"), key=lambda image: image.stat().st_mtime, reverse=True)
