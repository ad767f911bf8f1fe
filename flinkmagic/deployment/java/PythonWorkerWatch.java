/**
 * The body of a class that executors compile, as they compile the code that Spark generates for a query: it starts a
 * thread there, one for each executor, that ends the Python workers of interrupted tasks. The source of
 * PythonWorkers.java is inserted above it.
 */
public Object generate(Object[] references) {
    return new Start((String) references[0], Long.parseLong((String) references[1]));
}

/** What Spark takes for the rows of a partition: there are none, and asking for them starts the thread. */
static final class Start extends org.apache.spark.sql.execution.BufferedRowIterator {
    private final String prefix;
    private final long idleMs;

    Start(String prefix, long idleMs) {
        this.prefix = prefix;
        this.idleMs = idleMs;
    }

    public void init(int index, scala.collection.Iterator[] inputs) {
        partitionIndex = index;
        try {
            Watch.start(prefix, idleMs);
        } catch (Throwable refused) {
            // A task that fails may make Spark exclude its executor, and an error may end the executor itself.
            System.err.println(Watch.NAME + " is not started: " + refused);
        }
    }

    protected void processNext() throws java.io.IOException {
    }
}

/** Ends by itself if for a while it has seen no task with a Python worker, and was not asked for again. */
static final class Watch implements Runnable {
    static final String NAME = "flinkmagic-python-workers";
    private static final long ROUND_MS = 100L;

    private final String prefix;
    private final long idleMs;

    Watch(String prefix, long idleMs) {
        this.prefix = prefix;
        this.idleMs = idleMs;
    }

    static void start(String prefix, long idleMs) {
        // Each time that Spark compiles this source it is another class: they meet in the JVM's properties.
        System.setProperty(NAME, Long.toString(System.currentTimeMillis()));
        java.util.Iterator threads = Thread.getAllStackTraces().keySet().iterator();
        while (threads.hasNext()) {
            if (((Thread) threads.next()).getName().equals(NAME)) {
                return;
            }
        }
        Thread watch = new Thread(new Watch(prefix, idleMs), NAME);
        watch.setDaemon(true);
        watch.start();
    }

    public void run() {
        try {
            PythonWorkers workers = new PythonWorkers(prefix, true);
            long seen = System.currentTimeMillis();
            while (System.currentTimeMillis() - seen < idleMs) {
                seen = Math.max(seen, Long.getLong(NAME, 0L).longValue());
                if (workers.end() > 0) {
                    seen = System.currentTimeMillis();
                }
                Thread.sleep(ROUND_MS);
            }
        } catch (Throwable refused) {
            // An uncaught error ends the executor. Spark ends the workers itself then, as it would
            // without this thread.
            System.err.println(NAME + " ends: " + refused);
        }
    }
}
