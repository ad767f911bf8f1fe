package flinkmagic.deployment;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.WeakHashMap;
import org.apache.spark.TaskContext;

/**
 * Ends the Python workers of tasks that were cancelled, without the 2 to 4 seconds that Spark gives them.
 *
 * A task that waits for its Python worker does not notice that it was interrupted. Spark's own monitor thread of such a
 * worker looks every 2 seconds, then waits spark.python.task.killTimeout (2 s), then destroys the worker. Here the same
 * method of that thread is called immediately. It sees the tasks of the JVM in which it runs: the driver's in local
 * mode, an executor's if PythonWorkerWatch.java calls it. Janino loads all that the methods of a named class mention,
 * and some of that is in no jar of Spark's (protobuf, of SparkEnv): so as few of Spark's classes as possible are named
 * here. Executors get this source as text and compile it alone: it cannot use `Reflect`, nor any other class of ours.
 */
public class PythonWorkers {
    private static final String MONITOR = "org.apache.spark.api.python.BasePythonRunner$MonitorThread";
    private static final String READER = "org.apache.spark.api.python.BasePythonRunner$ReaderIterator";
    private static final String TAGS = "spark.job.tags";

    private final String tag;
    private final boolean isPrefix;
    private final Set<Thread> ended = Collections.newSetFromMap(new WeakHashMap<Thread, Boolean>());

    /** For tasks under a tag, or under any tag that begins with it. */
    public PythonWorkers(String tag, boolean isPrefix) {
        this.tag = tag;
        this.isPrefix = isPrefix;
    }

    /** Ends the workers of interrupted tasks under the tag; returns the number of tasks that still had one. */
    public int end() throws Exception {
        ThreadGroup group = Thread.currentThread().getThreadGroup();
        while (group.getParent() != null) {
            group = group.getParent();
        }
        Thread[] threads = new Thread[group.activeCount() * 2 + 16];
        int count = group.enumerate(threads, true);
        List<Thread> monitors = new ArrayList<Thread>();
        for (int i = 0; i < count; i++) {
            if (threads[i].getClass().getName().equals(MONITOR) && isOurs(contextOf(threads[i]))) {
                monitors.add(threads[i]);
            }
        }
        for (Thread monitor : monitors) {
            boolean hasItsWorker = knowsOfReleases(monitor) || waitsForItsOnlyWorker(monitor, monitors, threads, count);
            if (contextOf(monitor).isInterrupted() && hasItsWorker && ended.add(monitor)) {
                destroyWorker(monitor);
            }
        }
        return monitors.size();
    }

    private static TaskContext contextOf(Thread monitor) throws Exception {
        Field field = monitor.getClass().getDeclaredField("context");
        field.setAccessible(true);
        return (TaskContext) field.get(monitor);
    }

    /** Whether Spark itself leaves a worker alone that its task has returned already, as 4.3 does. */
    private static boolean knowsOfReleases(Thread monitor) {
        try {
            monitor.getClass().getDeclaredField("releasedOrClosed");
            return true;
        } catch (NoSuchFieldException older) {
            return false;
        }
    }

    /**
     * Whether a task reads from a Python worker right now, and has no other. On a Spark that does not track releases, a
     * worker that was returned may already serve another task, and only Spark's own long wait protects that one.
     */
    private static boolean waitsForItsOnlyWorker(Thread monitor, List<Thread> monitors, Thread[] threads, int count)
            throws Exception {
        TaskContext context = contextOf(monitor);
        for (Thread other : monitors) {
            if (other != monitor && contextOf(other) == context) {
                return false;
            }
        }
        String name = "(TID " + context.taskAttemptId() + ")";
        for (int i = 0; i < count; i++) {
            if (threads[i].getName().endsWith(name)) {
                StackTraceElement[] frames = threads[i].getStackTrace();
                for (StackTraceElement each : frames) {
                    if (each.getClassName().equals(READER)) {
                        return true;
                    }
                }
            }
        }
        return false;
    }

    private static void destroyWorker(Thread monitor) throws Exception {
        Field timeout = monitor.getClass().getDeclaredField("taskKillTimeout");
        timeout.setAccessible(true);
        timeout.setLong(monitor, 0L);
        Method method = monitor.getClass().getDeclaredMethod("monitorWorker", new Class[0]);
        method.setAccessible(true);
        method.invoke(monitor, new Object[0]);
    }

    private boolean isOurs(TaskContext context) {
        String all = context.isCompleted() ? null : context.getLocalProperty(TAGS);
        String[] tags = all == null ? new String[0] : all.split(",");
        for (String each : tags) {
            if (each.equals(tag) || isPrefix && each.startsWith(tag)) {
                return true;
            }
        }
        return false;
    }
}
