import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.cache.CuratorCacheListener;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.nodes.PersistentNode;
import org.apache.curator.framework.recipes.shared.SharedCount;
import org.apache.curator.framework.recipes.watch.PersistentWatcher;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.data.Stat;

/** Curator over a 3.9 client: what its users do, a line for each step that went well. */
public class Recipes {
    static final long PATIENCE = 60;

    static void check(String name, boolean ok) {
        System.out.println((ok ? "ok " : "FAILED ") + name);
    }

    static boolean eventually(Callable<Boolean> condition) throws Exception {
        for (long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE); System.nanoTime() < end; Thread.sleep(20)) {
            if (condition.call()) {
                return true;
            }
        }
        return false;
    }

    static CuratorFramework client(String address) throws Exception {
        CuratorFramework c = CuratorFrameworkFactory.builder().connectString(address).sessionTimeoutMs(10_000)
            .retryPolicy(new ExponentialBackoffRetry(100, 10)).build();
        c.start();
        if (!c.blockUntilConnected((int) PATIENCE, TimeUnit.SECONDS)) {
            throw new IllegalStateException("not connected");
        }
        return c;
    }

    static void basics(CuratorFramework c) throws Exception {
        Stat stat = new Stat();
        check("create2", "/c".equals(c.create().storingStatIn(stat).forPath("/c", "x".getBytes())) && stat.getDataLength() == 1);
        c.create().withMode(CreateMode.CONTAINER).forPath("/c/container");
        c.create().withTtl(100_000).withMode(CreateMode.PERSISTENT_WITH_TTL).forPath("/c/ttl");
        check("container and TTL", c.getChildren().forPath("/c").size() == 2);
        check("protected", c.create().withProtection().withMode(CreateMode.EPHEMERAL_SEQUENTIAL).forPath("/c/p-").contains("_c_"));
        check("transaction", c.transaction().forOperations(c.transactionOp().create().forPath("/c/t", "t".getBytes()),
            c.transactionOp().setData().forPath("/c", "y".getBytes()), c.transactionOp().delete().forPath("/c/t")).size() == 3);
        try {
            c.transaction().forOperations(c.transactionOp().create().forPath("/c/u"), c.transactionOp().delete().forPath("/c/none"));
            check("transaction that fails", false);
        } catch (KeeperException.NoNodeException e) {
            check("transaction that fails", c.checkExists().forPath("/c/u") == null);
        }
        c.sync().forPath("/c");
        c.create().orSetData().creatingParentContainersIfNeeded().forPath("/c/deep/er", "1".getBytes());
        check("parents", c.checkExists().forPath("/c/deep/er") != null);
    }

    static void watches(CuratorFramework a, CuratorFramework b) throws Exception {
        BlockingQueue<String> events = new LinkedBlockingQueue<>();
        PersistentWatcher w = new PersistentWatcher(b, "/c/w", true);
        w.getListenable().addListener(e -> events.add(e.getType() + " " + e.getPath()));
        w.start();
        CuratorCache cache = CuratorCache.build(b, "/c/w");
        CountDownLatch ready = new CountDownLatch(1);
        cache.listenable().addListener(CuratorCacheListener.builder().forInitialized(ready::countDown).build());
        cache.start();
        check("cache is filled", ready.await(PATIENCE, TimeUnit.SECONDS));
        a.create().forPath("/c/w");
        a.create().forPath("/c/w/k");
        a.setData().forPath("/c/w/k", "1".getBytes());
        a.delete().forPath("/c/w/k");
        List<String> told = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            String e = events.poll(PATIENCE, TimeUnit.SECONDS);
            if (e != null && e.startsWith("None")) {
                i--;
                continue;
            }
            told.add(e);
        }
        check("persistent recursive watch", told.equals(List.of("NodeCreated /c/w", "NodeCreated /c/w/k", "NodeDataChanged /c/w/k", "NodeDeleted /c/w/k")));
        a.setData().forPath("/c/w", "last".getBytes());
        boolean followed = eventually(() -> cache.get("/c/w").map(d -> new String(d.getData()).equals("last")).orElse(false)
            && !cache.get("/c/w/k").isPresent());
        check("cache follows", followed);
        cache.close();
        w.close();
    }

    static void recipes(CuratorFramework a, CuratorFramework b) throws Exception {
        InterProcessMutex la = new InterProcessMutex(a, "/c/lock"), lb = new InterProcessMutex(b, "/c/lock");
        la.acquire();
        check("lock held", !lb.acquire(100, TimeUnit.MILLISECONDS));
        la.release();
        check("lock passed on", lb.acquire(PATIENCE, TimeUnit.SECONDS));
        lb.release();
        LeaderLatch ea = new LeaderLatch(a, "/c/latch", "a"), eb = new LeaderLatch(b, "/c/latch", "b");
        ea.start();
        check("leader", ea.await(PATIENCE, TimeUnit.SECONDS));
        eb.start();
        ea.close();
        check("next leader", eb.await(PATIENCE, TimeUnit.SECONDS) && eb.getLeader().getId().equals("b"));
        eb.close();
        SharedCount na = new SharedCount(a, "/c/count", 1);
        na.start();
        na.setCount(5);
        SharedCount nb = new SharedCount(b, "/c/count", 1);
        nb.start();
        check("shared count", nb.getCount() == 5);
        na.close();
        nb.close();
        DistributedDoubleBarrier da = new DistributedDoubleBarrier(a, "/c/barrier", 2), db = new DistributedDoubleBarrier(b, "/c/barrier", 2);
        AtomicBoolean left = new AtomicBoolean();
        Thread other = new Thread(() -> {
            try {
                db.enter();
                db.leave();
                left.set(true);
            } catch (Exception e) {
                e.printStackTrace();
            }
        });
        other.start();
        check("barrier entered", da.enter(PATIENCE, TimeUnit.SECONDS));
        da.leave(PATIENCE, TimeUnit.SECONDS);
        other.join(PATIENCE * 1000);
        check("barrier left", left.get());
        PersistentNode node = new PersistentNode(a, CreateMode.EPHEMERAL, false, "/c/node", "x".getBytes());
        node.start();
        check("persistent node", node.waitForInitialCreate(PATIENCE, TimeUnit.SECONDS));
        b.delete().forPath("/c/node");
        check("persistent node is back", eventually(() -> b.checkExists().forPath("/c/node") != null));
        node.close();
    }

    public static void main(String[] args) throws Exception {
        CuratorFramework a = client(args[0]), b = client(args[0]);
        basics(a);
        watches(a, b);
        recipes(a, b);
        a.close();
        b.delete().deletingChildrenIfNeeded().forPath("/c");
        check("deleted", b.checkExists().forPath("/c") == null);
        b.close();
    }
}
