"""`make images`: see to it that every image is in the user's cache, and print where."""

import sys

from container_images.cache import say_on_stderr
from container_images.podtide_image import podtide_image
from container_images.small_images import pause_image, workload_image
from control_plane.errors import CannotBuild

if __name__ == "__main__":
    try:
        for image in (podtide_image, pause_image, workload_image):
            print(image(say_on_stderr), flush=True)
    except CannotBuild as lack:
        say_on_stderr(str(lack))
        sys.exit(1)
