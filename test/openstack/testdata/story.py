"""The story of a load balancer by openstacksdk, each call at the other replica than the one before.

story.py make|end ENDPOINT ENDPOINT

make creates a load balancer with all its children, finds and changes them, and prints their IDs as
a JSON object. end removes what make has made.
"""

import itertools
import json
import sys

import openstack
from openstack import exceptions

replicas = itertools.cycle(
    [openstack.connection.Connection(auth_type="none", auth={"endpoint": url}) for url in sys.argv[2:]]
)


def balancers():
    return next(replicas).load_balancer


def same(what, got, want):
    if got != want:
        sys.exit(f"{what}: {got!r}, want {want!r}")


def make():
    n1, n2 = (next(replicas).network.find_subnet(name, ignore_missing=False).id for name in ("N1-4", "N2-4"))
    lb = balancers().create_load_balancer(name="lb1", vip_subnet_id=n1, vip_address="10.0.1.10", provider="ovn", tags=["a"])
    same("status", balancers().wait_for_load_balancer(lb.id, interval=0.1, wait=60).operating_status, "ONLINE")
    pool = balancers().create_pool(name="p1", loadbalancer_id=lb.id, protocol="TCP", lb_algorithm="SOURCE_IP_PORT")
    m1 = balancers().create_member(pool, name="m1", address="10.0.1.107", subnet_id=n1, protocol_port=80)
    m2 = balancers().create_member(pool, name="m2", address="10.0.2.107", subnet_id=n2, protocol_port=80, weight=5)
    listener = balancers().create_listener(
        name="l1", load_balancer_id=lb.id, protocol="TCP", protocol_port=82, default_pool_id=pool.id
    )

    same("load balancer", balancers().find_load_balancer("lb1").id, lb.id)
    same("listener", balancers().find_listener("l1").id, listener.id)
    same("pool", balancers().find_pool("p1").id, pool.id)
    same("member", balancers().find_member("m2", pool).id, m2.id)
    same("no load balancer", balancers().find_load_balancer("lb2"), None)
    for _ in range(2):
        shown = balancers().get_load_balancer(lb.id)
        same("VIP", (shown.vip_address, shown.vip_subnet_id, shown.provider, shown.tags), ("10.0.1.10", n1, "ovn", ["a"]))
        same("children", (shown.listeners, shown.pools), ([{"id": listener.id}], [{"id": pool.id}]))
        same("load balancers", [one.id for one in balancers().load_balancers()], [lb.id])
        same("listeners", [one.default_pool_id for one in balancers().listeners(name="l1")], [pool.id])
        same("pools", [one.lb_algorithm for one in balancers().pools()], ["SOURCE_IP_PORT"])
        same("members", {one.name: one.weight for one in balancers().members(pool)}, {"m1": 1, "m2": 5})
        same("port", next(replicas).network.get_port(shown.vip_port_id).fixed_ips, [{"subnet_id": n1, "ip_address": "10.0.1.10"}])

    same("name", balancers().update_load_balancer(lb.id, name="other", description="d").name, "other")
    same("renamed", balancers().find_load_balancer("other").description, "d")
    balancers().update_load_balancer(lb.id, name="lb1")
    same("weight", balancers().update_member(m2.id, pool, weight=3).weight, 3)
    same("new weight", balancers().get_member(m2.id, pool).weight, 3)
    same("limit", balancers().update_listener(listener.id, connection_limit=100).connection_limit, 100)
    same("pool's description", balancers().update_pool(pool.id, description="d").description, "d")
    print(json.dumps({"lb": lb.id, "pool": pool.id, "listener": listener.id, "m1": m1.id, "m2": m2.id, "n1": n1, "n2": n2}))


def end():
    lb = balancers().find_load_balancer("lb1", ignore_missing=False)
    try:
        balancers().delete_load_balancer(lb.id)
        sys.exit("a load balancer with children was deleted")
    except exceptions.BadRequestException as e:
        same("refusal", e.details, f"Validation failure: Cannot delete Load Balancer {lb.id} - it has children")
    balancers().delete_load_balancer(lb.id, cascade=True)
    same("after the delete", balancers().find_load_balancer(lb.id), None)
    same("none", list(balancers().load_balancers()), [])


{"make": make, "end": end}[sys.argv[1]]()
