"""Decides which pending request gets which new slot (Flink's `RequestSlotMatchingStrategy`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from flinkmagic.scheduling.slots.physical_slot_provider import PhysicalSlot, PhysicalSlotRequest

Match = tuple[PhysicalSlotRequest, PhysicalSlot]


def match_requests(slots: Sequence[PhysicalSlot], requests: Iterable[PhysicalSlotRequest]) -> list[Match]:
    """Pair slots with requests, which come in the order in which they were made; at most one of each.

    First come, first served, but a request that names an executor gets its slots before the others. Only as many
    requests are considered as there are slots, so that none is served before its turn. Departure from Flink's
    `PreferredAllocationRequestSlotMatchingStrategy`: it prefers former allocations; this prefers executors, which is
    what a request names.
    """
    served = [request for _, request in zip(slots, requests, strict=False)]
    free = dict.fromkeys(slots)
    by_executor: dict[str, list[PhysicalSlot]] = {}
    for slot in reversed(slots):
        by_executor.setdefault(slot.resource_id, []).append(slot)
    matches: dict[str, Match] = {}
    for request in served:
        for resource_id in request.preferred_resource_ids:
            if by_executor.get(resource_id):
                slot = by_executor[resource_id].pop()
                del free[slot]
                matches[request.slot_request_id] = (request, slot)
                break
    others = [request for request in served if request.slot_request_id not in matches]
    matches.update((r.slot_request_id, (r, slot)) for r, slot in zip(others, list(free), strict=False))
    return [matches[request.slot_request_id] for request in served]
