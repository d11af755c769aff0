import pytest

from node_bench.readme_commands import BUILD, README, commands

PAGE = """
```bash
echo another
```

```bash
docker build --tag x/podtide:1 . && docker push x/podtide:1
helm install podtide deploy/chart \\
    --set a=b
```
"""


def test_commands_are_those_of_the_block_that_installs_with_their_lines_joined() -> None:
    assert commands(PAGE)[1:] == ["helm install podtide deploy/chart --set a=b"]


def test_readme_installs_in_three_commands_of_which_the_first_builds_and_pushes_the_image() -> None:
    build, install, wait = commands(README.read_text())
    assert BUILD.fullmatch(build)
    assert install.startswith("helm install podtide deploy/chart ")
    assert wait.startswith("kubectl wait --for=condition=Ready node --all")


@pytest.mark.parametrize("pushed", ["x/podtide:2", "podtide"])
def test_an_image_that_is_pushed_under_another_name_than_it_was_built_with_is_refused(pushed: str) -> None:
    assert not BUILD.fullmatch(f"docker build --tag x/podtide:1 . && docker push {pushed}")
