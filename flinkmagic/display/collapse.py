"""A large graph drawn small: related vertices as one box.

In this order, and as long as it makes the graph smaller: vertices of one pipelined region; chains, where each has one
reader that reads nothing else; siblings, which read the same and are read by the same.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace

from flinkmagic import amounts
from flinkmagic.display.snapshot import EdgeView, GraphView, NodeView, OperatorLine

LARGE = 60
"""Graphs of more boxes than this can be collapsed."""

_MAX_ROUNDS = 20


def collapse(view: GraphView, together: Iterable[Sequence[str]] = ()) -> GraphView:
    """Return `view` with boxes merged; `together` are node ids that go into one box, such as those of a region."""
    groups = _Groups(view)
    for ids in together:
        groups.merge(ids)
    for _ in range(_MAX_ROUNDS):
        before = groups.count
        groups.merge_chains()
        groups.merge_siblings()
        if groups.count == before:
            break
    return groups.view()


class _Groups:
    """A partition of the nodes of a view; each group has its first node's position."""

    def __init__(self, view: GraphView) -> None:
        self._view = view
        self._position = {node.id: index for index, node in enumerate(view.nodes)}
        self._members: dict[int, list[int]] = {index: [index] for index in range(len(view.nodes))}
        self._group_of = list(range(len(view.nodes)))

    @property
    def count(self) -> int:
        return len(self._members)

    def merge(self, ids: Sequence[str]) -> None:
        self._join(sorted({self._group_of[self._position[node]] for node in ids}))

    def _join(self, groups: Sequence[int]) -> None:
        if len(groups) < 2:
            return
        first = min(groups)
        members = sorted(member for group in groups for member in self._members.pop(group))
        self._members[first] = members
        for member in members:
            self._group_of[member] = first

    def _neighbours(self) -> tuple[dict[int, set[int]], dict[int, set[int]]]:
        before: dict[int, set[int]] = {group: set() for group in self._members}
        after: dict[int, set[int]] = {group: set() for group in self._members}
        for edge in self._view.edges:
            source = self._group_of[self._position[edge.source]]
            target = self._group_of[self._position[edge.target]]
            if source != target:
                after[source].add(target)
                before[target].add(source)
        return before, after

    def merge_chains(self) -> None:
        before, after = self._neighbours()
        follower = {
            group: target
            for group, targets in after.items()
            if len(targets) == 1 and len(before[target := next(iter(targets))]) == 1
        }
        heads = follower.keys() - set(follower.values())
        for head in sorted(heads):
            chain = [head]
            while chain[-1] in follower:
                chain.append(follower[chain[-1]])
            self._join(chain)

    def merge_siblings(self) -> None:
        before, after = self._neighbours()
        alike: dict[Hashable, list[int]] = {}
        for group in self._members:
            if before[group] or after[group]:
                alike.setdefault((frozenset(before[group]), frozenset(after[group])), []).append(group)
        for groups in alike.values():
            self._join(groups)

    def view(self) -> GraphView:
        boxes = {group: self._box(group, members) for group, members in sorted(self._members.items())}
        edges: dict[tuple[str, str], EdgeView] = {}
        for edge in self._view.edges:
            source = boxes[self._group_of[self._position[edge.source]]].id
            target = boxes[self._group_of[self._position[edge.target]]].id
            if source == target:
                continue
            moved = replace(edge, source=source, target=target, pairs=None)
            known = edges.get((source, target))
            if known is not None and known.label != moved.label:
                moved = replace(moved, partitioner="several", result_type="")
            edges[source, target] = moved
        summary = f"{self._view.summary}; drawn as {amounts.count(len(boxes), 'box', 'boxes')}"
        return replace(
            self._view, nodes=tuple(boxes.values()), edges=tuple(edges.values()), clusters=(), summary=summary
        )

    def _box(self, group: int, members: Sequence[int]) -> NodeView:
        nodes = [self._view.nodes[member] for member in members]
        if len(nodes) == 1:
            return nodes[0]
        name = f"group-{group}"
        first, last = nodes[0], nodes[-1]
        between = (OperatorLine(operator=f"… {amounts.count(len(nodes) - 2, 'more vertex', 'more vertices')}"),)
        return NodeView(
            id=name,
            role=last.role,
            name=f"{len(nodes)} job vertices: {first.title} … {last.title}",
            operators=(first.main_operator, *(between if len(nodes) > 2 else ()), last.main_operator),
            parallelism=sum(node.parallelism for node in nodes),
            vertex_id=name,
            badges=(f"{len(nodes)} vertices",),
            states=b"".join(node.states for node in nodes),
            members=tuple(node.vertex_id for node in nodes),
        )
