"""A cluster: whichever node the URL names, the node with the namespace is found, even after the namespace has moved."""

from shiftwork.store.urls import open_store
from tests.store.conformance.acts import add, claim_one, finish, job, statuses, succeeded
from tests.store.conformance.expect import soon
from tests.store.servers.redis import Server


def owner(nodes: list[Server], slot: int) -> Server:
    """Return the node that has a slot."""
    ranges = nodes[0].ask("CLUSTER", "SLOTS")
    port = next(primary[1] for first, last, primary, *_ in ranges if first <= slot <= last)
    return next(node for node in nodes if node.port == port)


def move(slot: int, source: Server, target: Server) -> None:
    """Move a slot with all its keys."""
    names = {node: node.ask("CLUSTER", "MYID") for node in (source, target)}
    target.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", names[source])
    source.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", names[target])
    while keys := source.ask("CLUSTER", "GETKEYSINSLOT", slot, 100):
        source.ask("MIGRATE", "127.0.0.1", target.port, "", 0, 5_000, "KEYS", *keys)
    for node in (target, source):
        node.ask("CLUSTER", "SETSLOT", slot, "NODE", names[target])


async def test_any_node_leads_to_the_namespace(cluster_url: str, cluster_nodes: list[Server]) -> None:
    for number in range(9):
        node = cluster_nodes[number % len(cluster_nodes)]
        place = f"shop {number}"
        for scheme in ("redis+cluster", "redis"):
            store = open_store(f"{scheme}://127.0.0.1:{node.port}", namespace=place)
            await store.open()
            await add(store, job(scheme))
            await claim_one(store, scheme)
            await store.close()
    assert all(node.ask("DBSIZE") for node in cluster_nodes), "every node has a namespace"


async def test_a_slot_that_has_moved_is_followed(cluster_url: str, cluster_nodes: list[Server]) -> None:
    store, other = (open_store(cluster_url, namespace="moving") for _ in range(2))
    await store.open()
    await other.open()
    await add(store, job("1"), job("2"))
    claimed = await claim_one(store, "1")
    slot = cluster_nodes[0].ask("CLUSTER", "KEYSLOT", "{shiftwork:moving}:")
    source = owner(cluster_nodes, slot)
    target = next(node for node in cluster_nodes if node is not source)
    bell = other.listen({"pool:p"})
    move(slot, source, target)
    await soon(bell.wait(), "a ring after the channel has moved")
    await finish(store, succeeded(claimed))
    await claim_one(other, "2")
    assert await statuses(store, "1", "2") == ["completed", "processing"]
    await add(store, job("3"))
    await soon(bell.wait(), "a ring from the new node")
    bell.close()
    await store.close()
    await other.close()
    move(slot, target, source)
