package edgelatch.peer;

import com.google.gson.Gson;
import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.nio.NioIoHandler;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.api.redisnode.RedisNode.InfoSection;
import org.redisson.api.redisnode.RedisNodes;
import org.redisson.config.Config;

/**
 * Redisson's part of {@code cargo xtask bench}: measures the same figures as
 * {@code tests/bench/handoff.mjs}, {@code waiting.mjs} and {@code server.mjs} do for the other
 * libraries. Takes their arguments as JSON, with {@code redis} and {@code what}; prints a line of
 * JSON.
 */
public final class Bench {
    private static final long LEASE_MS = 60_000;
    private static final int[] HOLD_MS = {20, 40};
    private static final long SETTLE_MS = 400;
    private static final int WARM_UP = 2;
    private static final int PINGS = 100;
    private static final int PAIRS = 300;
    /**
     * The commands that Redisson sends, and that its scripts do not run. After each unlock it also
     * sends a DEL, which Redis does not count separately from those of scripts: there is one per
     * message.
     */
    private static final Set<String> SENT = Set.of("eval", "evalsha", "subscribe", "unsubscribe", "publish");

    private final EventLoopGroup loops = new MultiThreadIoEventLoopGroup(4, NioIoHandler.newFactory());
    private final ExecutorService executor = Executors.newCachedThreadPool(Service::daemon);
    private final JsonObject options;
    private final RedissonClient shared;
    private final String name = "bench:" + UUID.randomUUID();

    private Bench(JsonObject options) {
        this.options = options;
        shared = connect(64);
    }

    /** Measures once and exits, even if threads still wait. */
    public static void main(String[] args) throws Exception {
        var bench = new Bench(JsonParser.parseString(args[0]).getAsJsonObject());
        var figures = switch (bench.options.get("what").getAsString()) {
            case "handoff" -> bench.handoff();
            case "server" -> bench.server();
            default -> bench.waiting();
        };
        System.out.println(new Gson().toJson(figures));
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    /** A thread that waits for the lock, holds it, and releases it on request. */
    private record Waiter(RLock lock, Semaphore enter, Semaphore leave, BlockingQueue<Long> released) {
        Waiter(RLock lock) {
            this(lock, new Semaphore(0), new Semaphore(0), new LinkedBlockingQueue<>());
        }

        void run(BlockingQueue<Arrival> arrivals) {
            while (true) {
                enter.acquireUninterruptibly();
                lock.lock(LEASE_MS, TimeUnit.MILLISECONDS);
                arrivals.add(new Arrival(this, System.nanoTime()));
                leave.acquireUninterruptibly();
                long now = System.nanoTime();
                lock.unlock();
                released.add(now);
            }
        }
    }

    private record Arrival(Waiter waiter, long at) {}

    private Object handoff() throws Exception {
        warmUp();
        int handoffs = options.get("handoffs").getAsInt();
        long most = options.get("seconds").getAsLong() * 1_000_000_000;
        var roundTrips = pings();
        var arrivals = new LinkedBlockingQueue<Arrival>();
        var waiters = waiters(options.get("waiters").getAsInt() + 1, options.get("apart").getAsBoolean());
        for (var waiter : waiters) {
            Service.daemon(() -> waiter.run(arrivals)).start();
        }
        waiters.get(0).enter.release();
        var turn = arrivals.take();
        waiters.subList(1, waiters.size()).forEach(waiter -> waiter.enter.release());
        Thread.sleep(SETTLE_MS);

        var ms = new ArrayList<Double>();
        var random = new Random(waiters.size());
        long before = 0;
        long start = 0;
        for (int done = 0; done < WARM_UP + handoffs; done++) {
            if (done == WARM_UP) {
                before = sent();
                start = System.nanoTime();
            }
            Thread.sleep(random.nextInt(HOLD_MS[0], HOLD_MS[1]));
            turn.waiter.leave.release();
            var next = arrivals.take();
            long released = turn.waiter.released.take();
            if (done >= WARM_UP) {
                ms.add((next.at - released) / 1e6);
            }
            turn.waiter.enter.release();
            turn = next;
            if (!ms.isEmpty() && System.nanoTime() - start > most) {
                break;
            }
        }
        long requests = sent() - before;
        roundTrips.addAll(pings());
        return Map.of("ms", ms, "requests", requests, "roundTrips", roundTrips);
    }

    private Object waiting() throws Exception {
        warmUp();
        var waiters = waiters(options.get("waiters").getAsInt(), true);
        shared.getLock(name).lock(LEASE_MS, TimeUnit.MILLISECONDS);
        long before = sent();
        long all = total();
        for (var waiter : waiters) {
            Service.daemon(() -> waiter.run(new LinkedBlockingQueue<>())).start();
            waiter.enter.release();
        }
        Thread.sleep(options.get("seconds").getAsLong() * 1_000);
        // Without the commands that read these two figures.
        return Map.of("requests", sent() - before, "commands", total() - all - 2);
    }

    private Object server() {
        warmUp();
        var commands = options.get("commands").getAsJsonArray();
        int rounds = options.get("rounds").getAsInt();
        int pairs = options.get("pairs").getAsInt();
        var us = new ArrayList<Double>();
        var lock = shared.getLock(name);
        for (int round = 0; round < rounds; round++) {
            long before = spent(commands);
            for (int i = 0; i < pairs; i++) {
                lock.lock(LEASE_MS, TimeUnit.MILLISECONDS);
                lock.unlock();
            }
            us.add((double) (spent(commands) - before) / pairs);
        }
        return Map.of("us", us);
    }

    private List<Waiter> waiters(int count, boolean apart) {
        var waiters = new ArrayList<Waiter>();
        for (int i = 0; i < count; i++) {
            var client = apart ? connect(2) : shared;
            waiters.add(new Waiter(client.getLock(name)));
        }
        return waiters;
    }

    /**
     * A client as in a service; the clients of one process share threads, since a hundred pools of
     * threads would measure the machine.
     */
    private RedissonClient connect(int connections) {
        var config = new Config().setEventLoopGroup(loops).setExecutor(executor);
        config.useSingleServer()
            .setAddress(options.get("redis").getAsString())
            .setConnectionMinimumIdleSize(1)
            .setConnectionPoolSize(connections)
            .setSubscriptionConnectionMinimumIdleSize(1)
            .setSubscriptionConnectionPoolSize(connections);
        return Redisson.create(config);
    }

    private void warmUp() {
        var lock = shared.getLock(name + ":warm");
        for (int i = 0; i < PAIRS; i++) {
            lock.lock(LEASE_MS, TimeUnit.MILLISECONDS);
            lock.unlock();
        }
    }

    /** The round-trip times of the smallest request, in milliseconds. */
    private List<Double> pings() {
        var ms = new ArrayList<Double>();
        for (int i = 0; i < 2 * PINGS; i++) {
            long start = System.nanoTime();
            shared.getKeys().countExists(name);
            if (i >= PINGS) {
                ms.add((System.nanoTime() - start) / 1e6);
            }
        }
        return ms;
    }

    /** The number of commands that clients have sent, as Redis counts them. */
    private long sent() {
        var stats = info(InfoSection.COMMANDSTATS);
        return SENT.stream().mapToLong(command -> calls(stats.get("cmdstat_" + command))).sum();
    }

    /** The microseconds that Redis has spent on these commands. */
    private long spent(JsonArray commands) {
        var stats = info(InfoSection.COMMANDSTATS);
        return commands.asList().stream().mapToLong(command -> usec(stats.get("cmdstat_" + command.getAsString()))).sum();
    }

    private static long usec(String stat) {
        return stat == null ? 0 : Long.parseLong(stat.replaceFirst(".*usec=(\\d+),.*", "$1"));
    }

    private long total() {
        return Long.parseLong(info(InfoSection.STATS).get("total_commands_processed"));
    }

    private Map<String, String> info(InfoSection section) {
        return shared.getRedisNodes(RedisNodes.SINGLE).getInstance().info(section);
    }

    private static long calls(String stat) {
        return stat == null ? 0 : Long.parseLong(stat.substring("calls=".length(), stat.indexOf(',')));
    }
}
