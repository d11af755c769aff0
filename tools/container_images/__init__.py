"""podtide's container image and two small ones, made on a machine that has neither a registry nor Docker.

`podtide_image` and `small_images` are what others ask: each image is an archive in the user's cache, made when it is first
asked for, and `ctr -n k8s.io images import` takes it. podtide's is built from deploy/Dockerfile as it is, by Debian's
buildah in a root directory of its own (`workshop`), on base images made of Debian's packages. The small ones are written
by `oci` alone.
"""
