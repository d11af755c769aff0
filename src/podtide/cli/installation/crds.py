"""`podtide crds`: the CustomResourceDefinitions that a cluster needs before podtide can run in it."""

import click

from podtide.cli.output.formats import formats_option, show


@click.command()
@click.option(
    "--with-network-attachments",
    is_flag=True,
    help="Print the CRD of NetworkAttachmentDefinition too. It belongs to Multus, which installs it: ask for it only "
    "on a cluster without Multus, such as a laptop's or a test's.",
)
@formats_option(
    "yaml",
    "json",
    "name",
    about="YAML documents, JSON (a List of them), or the names that kubectl knows them by.",
)
def crds(*, with_network_attachments: bool, output: str) -> None:
    """Print the CustomResourceDefinitions podtide needs, as YAML or JSON.

    Pipe them into `kubectl apply -f -`. Those of Azure CNS and Whereabouts are the same kinds with optional
    fields added, so their programs go on working with them.
    """
    import yaml  # noqa: PLC0415 - commands import what they need when they run, so that --help is quick

    from podtide.resources.crds import crds as all_crds  # noqa: PLC0415 - as above

    documents = all_crds(with_network_attachments=with_network_attachments)
    if output == "yaml":
        click.echo(yaml.safe_dump_all(documents, explicit_start=True, width=110), nl=False)
        return
    names = (
        f"customresourcedefinition.apiextensions.k8s.io/{each['metadata']['name']}" for each in documents
    )
    show(output, {"apiVersion": "v1", "kind": "List", "items": documents}, (), names)
