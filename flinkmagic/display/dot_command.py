"""A small `dot`: reads DOT from standard input, lays it out with pygraphviz, writes the format asked for.

Run as a script, in a process of its own: Graphviz inside pygraphviz is not thread-safe, and may not be stopped.
Understands what the `graphviz` package passes: ``-Kdot -Tsvg`` (and ``-V``).
"""

from __future__ import annotations

import sys


def main(arguments: list[str]) -> int:
    """Run one layout; return the exit code."""
    import pygraphviz

    if "-V" in arguments:
        print(f"dot - graphviz version {pygraphviz.__graphviz_version__} (pygraphviz)", file=sys.stderr)
        return 0
    engine, output_format = "dot", "dot"
    for argument in arguments:
        if argument.startswith("-K"):
            engine = argument[2:]
        elif argument.startswith("-T"):
            output_format = argument[2:]
        else:
            print(f"dot: option {argument!r} is not known here (only -K, -T and -V)", file=sys.stderr)
            return 2
    source = sys.stdin.buffer.read().decode("utf-8")
    if not source:  # started ahead, but not needed
        return 0
    graph = pygraphviz.AGraph(string=source)
    sys.stdout.buffer.write(graph.draw(format=output_format, prog=engine))
    return 0


if __name__ == "__main__":
    # The script's own folder comes first on the path, and its modules would shadow others of the same name.
    del sys.path[0]
    sys.exit(main(sys.argv[1:]))
