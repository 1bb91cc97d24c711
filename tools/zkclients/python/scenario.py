"""kazoo: what its users do, recipes among it; a line for each step that went well. usage: scenario.py HOST:PORT"""

import sys
import threading
import warnings

from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import BadVersionError, NoAuthError, NodeExistsError, NoNodeError, RolledBackError
from kazoo.protocol.states import EventType
from kazoo.recipe.watchers import ChildrenWatch, DataWatch
from kazoo.security import make_digest_acl

PATIENCE = 60


def check(name, ok):
    print(("ok " if ok else "FAILED ") + name, flush=True)


def fails(name, kind, f, *args, **kw):
    try:
        f(*args, **kw)
        check(name, False)
    except kind:
        check(name, True)


def basics(a, b):
    check("create", a.create("/k", b"one") == "/k")
    fails("create again", NodeExistsError, a.create, "/k", b"x")
    told = threading.Event()
    event = []
    data, stat = b.get("/k", watch=lambda e: (event.append(e), told.set()))
    check("get", data == b"one" and stat.version == 0)
    a.set("/k", b"two", version=0)
    check("watch", told.wait(PATIENCE) and event[0].type == EventType.CHANGED)
    fails("bad version", BadVersionError, a.set, "/k", b"x", version=0)
    check("sequential", a.create("/k/s-", sequence=True) == "/k/s-0000000000")
    path, stat = a.create("/k/two", b"xy", include_data=True)
    check("create2", path == "/k/two" and stat.dataLength == 2)
    a.ensure_path("/k/deep/er")
    check("children", sorted(b.get_children("/k")) == ["deep", "s-0000000000", "two"])
    t = a.transaction()
    t.create("/k/t", b"t")
    t.check("/k", version=1)
    t.set_data("/k", b"three", version=1)
    t.delete("/k/s-0000000000")
    check("transaction", not any(isinstance(r, Exception) for r in t.commit()))
    t = a.transaction()
    t.create("/k/u")
    t.delete("/k/none")
    r = t.commit()
    check("transaction that fails", isinstance(r[0], RolledBackError) and isinstance(r[1], NoNodeError) and not a.exists("/k/u"))
    a.add_auth("digest", "u:p")
    a.create("/k/mine", b"x", acl=[make_digest_acl("u", "p", all=True)])
    fails("no permission", NoAuthError, b.get, "/k/mine")
    check("acl", a.get_acls("/k/mine")[0][0].id.scheme == "digest")
    check("sync", a.sync("/k") == "/k")
    check("server_version", a.server_version() >= (3, 8, 0))


def recipes(a, b):
    seen = []
    changed = threading.Condition()

    @b.DataWatch("/k/watched")
    def data_watch(data, stat):
        with changed:
            seen.append(data)
            changed.notify_all()

    kids = []

    @b.ChildrenWatch("/k")
    def children_watch(names):
        with changed:
            kids.append(sorted(names))
            changed.notify_all()

    a.create("/k/watched", b"1")
    with changed:
        check("DataWatch", changed.wait_for(lambda: b"1" in seen, PATIENCE))
        check("ChildrenWatch", changed.wait_for(lambda: any("watched" in k for k in kids), PATIENCE))

    lock_a, lock_b = a.Lock("/k/lock", "a"), b.Lock("/k/lock", "b")
    lock_a.acquire(timeout=PATIENCE)
    check("Lock held", not lock_b.acquire(blocking=False))
    waiting = threading.Thread(target=lambda: lock_b.acquire(timeout=PATIENCE))
    waiting.start()
    lock_a.release()
    waiting.join(PATIENCE)
    check("Lock passed on", lock_b.is_acquired)
    lock_b.release()

    leaders = []

    def lead(name):
        leaders.append(name)

    elections = [threading.Thread(target=c.Election("/k/election", n).run, args=(lead, n)) for c, n in ((a, "a"), (b, "b"))]
    for e in elections:
        e.start()
    for e in elections:
        e.join(PATIENCE)
    check("Election", sorted(leaders) == ["a", "b"])

    counter = a.Counter("/k/counter")
    threads = [threading.Thread(target=lambda c=c: [c.Counter("/k/counter").__add__(1) for _ in range(10)]) for c in (a, b)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(PATIENCE)
    check("Counter", counter.value == 20)

    queue = a.LockingQueue("/k/queue")
    queue.put_all([b"1", b"2"])
    other = b.LockingQueue("/k/queue")
    first = other.get(PATIENCE)
    other.consume()
    check("LockingQueue", first == b"1" and len(queue) == 1)

    party_a, party_b = a.Party("/k/party", "a"), b.Party("/k/party", "b")
    party_a.join()
    party_b.join()
    check("Party", len(party_a) == 2)
    party_b.leave()

    barrier = [c.DoubleBarrier("/k/barrier", 2) for c in (a, b)]
    threads = [threading.Thread(target=lambda x=x: (x.enter(), x.leave())) for x in barrier]
    for t in threads:
        t.start()
    for t in threads:
        t.join(PATIENCE)
    check("DoubleBarrier", not any(t.is_alive() for t in threads))


def lifetime(a, b, address):
    a.create("/k/e", ephemeral=True)
    gone = threading.Event()
    b.exists("/k/e", watch=lambda e: gone.set() if e.type == EventType.DELETED else None)
    a.stop()
    check("ephemeral goes", gone.wait(PATIENCE))
    warnings.simplefilter("ignore")  # the chroot is not there yet
    rooted = KazooClient(hosts=address + "/k/chroot")
    rooted.start(timeout=PATIENCE)
    rooted.ensure_path("/")
    rooted.create("/inside")
    check("chroot", b.exists("/k/chroot/inside") is not None)
    rooted.stop()
    b.add_auth("digest", "u:p")
    b.delete("/k", recursive=True)
    check("delete recursive", not b.exists("/k"))
    b.stop()


def main():
    address = sys.argv[1]
    a, b = KazooClient(hosts=address), KazooClient(hosts=address)
    a.start(timeout=PATIENCE)
    b.start(timeout=PATIENCE)
    basics(a, b)
    recipes(a, b)
    lifetime(a, b, address)


main()
