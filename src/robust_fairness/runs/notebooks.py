"""The magic ``%load_node`` in notebooks, for nodes that read a part of every cell as well."""

from inspect import Parameter, signature

from kedro.pipeline import Node

CODE = """\
node = pipelines["__default__"].filter(node_names=["{name}"]).nodes[0]  # calls {function}
inputs = {{
{inputs}
}}
outputs = node.run(inputs)
"""


def load_node(line: str, local_ns: object = None) -> None:
    """Put the code of the node named in ``line`` into the next cell.

    Kedro's own magic, which this one replaces, copies the function of a node; it fails for
    functions with ``**parts``, of which the inputs are loaded and the node is run.
    """
    from IPython import get_ipython
    from kedro.framework.project import pipelines
    from kedro.ipython import magic_load_node

    nodes = {node.name: node for pipeline in pipelines.values() for node in pipeline.nodes}
    node = nodes.get(line.strip())
    if node is None or not is_variadic(node):
        magic_load_node(line)
    else:
        get_ipython().set_next_input(code_of(node))


def is_variadic(node: Node) -> bool:
    """Whether the function of a node takes any number of named inputs."""
    kinds = {parameter.kind for parameter in signature(node.func).parameters.values()}
    return Parameter.VAR_KEYWORD in kinds


def code_of(node: Node) -> str:
    """Code that loads the inputs of a node from ``catalog`` and runs it."""
    function = f"{node.func.__module__}.{node.func.__name__}"
    inputs = [f'    "{name}": catalog.load("{name}"),' for name in dict.fromkeys(node.inputs)]
    return CODE.format(name=node.name, function=function, inputs="\n".join(inputs))
