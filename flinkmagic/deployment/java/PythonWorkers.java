import java.lang.reflect.Field;
import java.lang.reflect.Method;
import org.apache.spark.TaskContext;

/**
 * Ends the Python workers of tasks that were cancelled, without the 2 to 4 seconds that Spark gives them.
 *
 * A task that waits for its Python worker does not notice that it was interrupted. Spark's own monitor thread of such a
 * worker looks every 2 seconds, then waits spark.python.task.killTimeout (2 s), then destroys the worker. Here the very
 * same method of that thread is called at once. It sees the tasks of the JVM in which it runs: the driver's in local
 * mode, an executor's where ExecutorWatch.java calls it. Executors lack classes that the driver has (protobuf): nothing
 * of Spark's may be named here that mentions one of them, as SparkEnv does.
 */
public class PythonWorkers {
    private static final String MONITOR = "org.apache.spark.api.python.BasePythonRunner$MonitorThread";
    private static final String TAGS = "spark.job.tags";

    private final String tag;
    private final boolean isPrefix;

    /** For tasks under a tag, or under any that begins with it. */
    public PythonWorkers(String tag, boolean isPrefix) {
        this.tag = tag;
        this.isPrefix = isPrefix;
    }

    /** Ends the workers of interrupted tasks under the tag; gives the number of tasks that still had one. */
    public int end() throws Exception {
        ThreadGroup group = Thread.currentThread().getThreadGroup();
        while (group.getParent() != null) {
            group = group.getParent();
        }
        Thread[] threads = new Thread[group.activeCount() * 2 + 16];
        int count = group.enumerate(threads, true);
        int found = 0;
        for (int i = 0; i < count; i++) {
            if (threads[i].getClass().getName().equals(MONITOR) && endOne(threads[i])) {
                found++;
            }
        }
        return found;
    }

    private boolean endOne(Thread monitor) throws Exception {
        Field field = monitor.getClass().getDeclaredField("context");
        field.setAccessible(true);
        TaskContext context = (TaskContext) field.get(monitor);
        if (context.isCompleted() || !isOurs(context.getLocalProperty(TAGS))) {
            return false;
        }
        if (context.isInterrupted()) {
            Field timeout = monitor.getClass().getDeclaredField("taskKillTimeout");
            timeout.setAccessible(true);
            timeout.setLong(monitor, 0L);
            Method method = monitor.getClass().getDeclaredMethod("monitorWorker", new Class[0]);
            method.setAccessible(true);
            method.invoke(monitor, new Object[0]);
        }
        return true;
    }

    private boolean isOurs(String all) {
        String[] tags = all == null ? new String[0] : all.split(",");
        for (int i = 0; i < tags.length; i++) {
            if (tags[i].equals(tag) || isPrefix && tags[i].startsWith(tag)) {
                return true;
            }
        }
        return false;
    }
}
