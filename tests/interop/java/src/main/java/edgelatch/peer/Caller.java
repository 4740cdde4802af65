package edgelatch.peer;

import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** A Java thread with a name: a holder in Redisson's terms. */
final class Caller {
    /**
     * The classes in which Redisson's threads wait: for a message, for a latch, for the next try of
     * a spin lock.
     */
    private static final Set<String> WAITS =
        Set.of("java.util.concurrent.Semaphore", "org.redisson.misc.ReclosableLatch", "org.redisson.RedissonSpinLock");
    private static final Set<String> STOPS = Set.of("park", "sleep", "sleep0");

    private final ExecutorService queue;
    private volatile Thread thread;

    Caller() {
        queue = Executors.newSingleThreadExecutor(work -> thread = Service.daemon(work));
    }

    /** Queues work behind all earlier work. */
    void execute(Runnable work) {
        queue.execute(work);
    }

    /** Whether it waits for a change of the object that it wants. */
    boolean waits() {
        var stack = thread == null ? new StackTraceElement[0] : thread.getStackTrace();
        boolean stopped = stack.length > 0 && STOPS.contains(stack[0].getMethodName());
        // Waiting for the reply to a command happens in other classes.
        for (var frame : stack) {
            if (stopped && WAITS.contains(frame.getClassName())) {
                return !isAsking(stack);
            }
        }
        return false;
    }

    void interrupt() {
        if (thread != null) {
            thread.interrupt();
        }
    }

    void end() {
        queue.shutdownNow();
    }

    private static boolean isAsking(StackTraceElement[] stack) {
        for (var frame : stack) {
            if (frame.getClassName().equals("java.util.concurrent.CompletableFuture")) {
                return true;
            }
        }
        return false;
    }
}
