package flinkmagic.reuse;

import java.util.HashSet;

import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerApplicationEnd;
import org.apache.spark.scheduler.SparkListenerJobStart;

/**
 * Jobs that run while no other job of a context does: they wait until that is so, and are cancelled when another job
 * starts.
 *
 * Seen on Spark 3.5 and 4.3.
 */
public class BackgroundJobs extends SparkListener {
    private static final String TAGS = "spark.job.tags";
    private static final long LOOK_MS = 50;

    private final String tag;
    private final BackgroundJobLogs logs;
    private final HashSet<Integer> own = new HashSet<Integer>();
    private SparkContext context = null;
    private long othersAt = 0;
    private boolean isRunning = false;
    private boolean gaveWay = false;

    /** @param tag that of these jobs */
    public BackgroundJobs(String tag) {
        this.tag = tag;
        this.logs = new BackgroundJobLogs(tag);
    }

    /** Gives way from now on to the other jobs of a context. */
    public void follow(SparkContext sc) {
        context = sc;
        othersAt = now();
        logs.open();
        sc.addSparkListener(this);
    }

    /**
     * Waits until no other job has run for a while.
     *
     * @return whether that has come about in time
     */
    public boolean awaitQuiet(long quietMs, long patienceMs) throws InterruptedException {
        long end = now() + patienceMs;
        while (!isQuiet(quietMs)) {
            if (now() > end || context.isStopped()) {
                return false;
            }
            Thread.sleep(LOOK_MS);
        }
        return true;
    }

    private synchronized boolean isQuiet(long quietMs) {
        int[] active = context.statusTracker().getActiveJobIds();
        for (int job : active) {
            if (!own.contains(Integer.valueOf(job))) {
                othersAt = now();
            }
        }
        return now() - othersAt >= Math.max(1, quietMs);
    }

    private static long now() {
        return System.nanoTime() / 1000000L;
    }

    /** The calling thread's jobs are such jobs from now on. */
    public synchronized void begin(String description) {
        context.addJobTag(tag);
        context.setLocalProperty("spark.job.description", description);
        logs.begin(context);
        isRunning = true;
        gaveWay = false;
    }

    /** Whether they were cancelled for others; the calling thread's next jobs are no such jobs. */
    public synchronized boolean end() {
        isRunning = false;
        context.removeJobTag(tag);
        context.setLocalProperty("spark.job.description", null);
        logs.end(context);
        return gaveWay;
    }

    @Override
    public void onJobStart(SparkListenerJobStart event) {
        String tags = event.properties() == null ? null : event.properties().getProperty(TAGS);
        synchronized (this) {
            if (tags != null && ("," + tags + ",").contains("," + tag + ",")) {
                own.add(Integer.valueOf(event.jobId()));
                return;
            }
            othersAt = now();
            if (!isRunning) {
                return;
            }
            gaveWay = true;
            logs.keepOut();
        }
        context.cancelJobsWithTag(tag);
    }

    @Override
    public void onApplicationEnd(SparkListenerApplicationEnd event) {
        logs.close();
    }
}
