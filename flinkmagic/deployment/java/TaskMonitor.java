package flinkmagic.deployment;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.apache.spark.FetchFailed;
import org.apache.spark.SparkContext;
import org.apache.spark.TaskEndReason;
import org.apache.spark.TaskFailedReason;
import org.apache.spark.executor.TaskMetrics;
import org.apache.spark.scheduler.AccumulableInfo;
import org.apache.spark.scheduler.JobFailed;
import org.apache.spark.scheduler.LiveListenerBus;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerApplicationEnd;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.scheduler.SparkListenerExecutorAdded;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.apache.spark.scheduler.SparkListenerJobEnd;
import org.apache.spark.scheduler.SparkListenerJobStart;
import org.apache.spark.scheduler.SparkListenerStageSubmitted;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.scheduler.SparkListenerTaskStart;
import org.apache.spark.scheduler.StageInfo;
import org.apache.spark.scheduler.TaskInfo;
import org.apache.spark.storage.RDDInfo;
import scala.collection.JavaConverters;

/**
 * Writes what Spark reports about one job's stages and tasks as lines, which Python takes in one call.
 *
 * A line's fields are separated by tabs, the first names the kind; deployment/watching/task_events.py reads them.
 * Only jobs with a tag that begins with `prefix` are noted, so that the session's other work costs nothing.
 */
public class TaskMonitor extends SparkListener {
    private static final int LONGEST_ERROR = 65536;
    private static final String TAGS = "spark.job.tags";

    private final String prefix;
    private final LinkedBlockingQueue<String> lines = new LinkedBlockingQueue<String>();
    private final Semaphore urgent = new Semaphore(0);
    // Touched by the listener bus's thread only.
    private final HashSet<Integer> stages = new HashSet<Integer>();
    private final HashSet<Integer> jobs = new HashSet<Integer>();
    private final HashMap<Integer, HashSet<Long>> metricsOfStages = new HashMap<Integer, HashSet<Long>>();
    // Tags under which Spark has received a job, or will receive none any more; protected by its own lock.
    private final HashSet<String> submitted = new HashSet<String>();
    // Spark counts the batches of persisted rows as records; for these tags it is told which metrics count the rows.
    private final ConcurrentHashMap<String, HashSet<Long>> rowMetrics = new ConcurrentHashMap<String, HashSet<Long>>();
    private LiveListenerBus bus;

    public TaskMonitor(String prefix) {
        this.prefix = prefix;
    }

    /**
     * All available lines. Waits for the first one, then `gatherMs` more for others, unless one comes that a caller
     * waits for (a marker).
     */
    public String drain(long waitMs, long gatherMs) throws InterruptedException {
        String first = (String) lines.poll(waitMs, TimeUnit.MILLISECONDS);
        if (first == null) {
            return "";
        }
        if (gatherMs > 0) {
            urgent.tryAcquire(gatherMs, TimeUnit.MILLISECONDS);
        }
        urgent.drainPermits();
        ArrayList<String> taken = new ArrayList<String>();
        taken.add(first);
        lines.drainTo(taken);
        StringBuilder out = new StringBuilder(taken.size() * 96);
        for (String line : taken) {
            out.append(line).append('\n');
        }
        return out.toString();
    }

    /** Starts to listen. */
    public void listenTo(SparkContext context) {
        bus = context.listenerBus();
        context.addSparkListener(this);
    }

    /** Makes a line come after those of all events that were posted before: the listener bus keeps the order. */
    public void mark(String token) {
        submitted(token);
        bus.post(new Marker(this, token));
    }

    /**
     * Waits until Spark has received a job under each of some tags, or nothing more will come under it (a marker).
     *
     * @param tags separated by blanks
     * @param early the suffix of a tag for jobs that prepare a stage
     */
    public void awaitSubmission(String tags, String early, long waitMs) throws InterruptedException {
        long until = System.nanoTime() + waitMs * 1000000L;
        synchronized (submitted) {
            for (String tag : tags.split(" ")) {
                while (!submitted.contains(tag) && !submitted.contains(tag + early)) {
                    long left = (until - System.nanoTime()) / 1000000L;
                    if (left <= 0) {
                        return;
                    }
                    submitted.wait(left);
                }
            }
        }
    }

    /**
     * Counts the rows that the tasks of a stage read by metrics, where the stage reads persisted rows.
     *
     * @param metrics the ids of these accumulators, separated by commas
     */
    public void countRows(String tag, String metrics) {
        HashSet<Long> ids = new HashSet<Long>();
        for (String id : metrics.split(",")) {
            ids.add(Long.valueOf(id));
        }
        rowMetrics.put(tag, ids);
    }

    private void submitted(String tag) {
        synchronized (submitted) {
            submitted.add(tag);
            submitted.notifyAll();
        }
    }

    /** Lets a waiting `drain` return, with an empty line. */
    public void wake() {
        lines.add("");
        urgent.release();
    }

    @Override
    public void onJobStart(SparkListenerJobStart event) {
        String tag = tagOf(event.properties(), prefix);
        if (tag == null) {
            return;
        }
        jobs.add(Integer.valueOf(event.jobId()));
        submitted(tag);
        StringBuilder line = new StringBuilder();
        line.append("J\t").append(event.jobId()).append('\t').append(tag).append('\t');
        boolean first = true;
        for (StageInfo info : JavaConverters.asJavaIterable(event.stageInfos())) {
            stages.add(Integer.valueOf(info.stageId()));
            line.append(first ? "" : ",").append(info.stageId()).append(':').append(shuffleOf(info));
            line.append(':').append(info.numTasks());
            first = false;
        }
        lines.add(line.toString());
    }

    @Override
    public void onJobEnd(SparkListenerJobEnd event) {
        if (!jobs.remove(Integer.valueOf(event.jobId()))) {
            return;
        }
        boolean failed = event.jobResult() instanceof JobFailed;
        lines.add("j\t" + event.jobId() + "\t" + (failed ? "FAILED" : "SUCCEEDED"));
    }

    @Override
    public void onStageSubmitted(SparkListenerStageSubmitted event) {
        String tag = tagOf(event.properties(), prefix);
        if (tag != null && rowMetrics.containsKey(tag) && readsPersisted(event.stageInfo())) {
            metricsOfStages.put(Integer.valueOf(event.stageInfo().stageId()), rowMetrics.get(tag));
        }
    }

    @Override
    public void onTaskStart(SparkListenerTaskStart event) {
        if (stages.contains(Integer.valueOf(event.stageId()))) {
            lines.add(head("S", event.stageId(), event.stageAttemptId(), event.taskInfo()));
        }
    }

    @Override
    public void onTaskEnd(SparkListenerTaskEnd event) {
        TaskInfo info = event.taskInfo();
        if (info == null || !stages.contains(Integer.valueOf(event.stageId()))) {
            return;
        }
        StringBuilder line = new StringBuilder(head("E", event.stageId(), event.stageAttemptId(), info));
        line.append('\t').append(info.finishTime()).append('\t').append(info.status()).append('\t');
        appendMetrics(line, event.taskMetrics(), rowsRead(event));
        TaskEndReason reason = event.reason();
        if (reason instanceof TaskFailedReason) {
            line.append("\t").append(reason.getClass().getSimpleName().replace("$", ""));
            if (reason instanceof FetchFailed) {
                FetchFailed lost = (FetchFailed) reason;
                line.append(':').append(lost.shuffleId()).append(':').append(lost.mapIndex());
            }
            line.append('\t').append(escape(((TaskFailedReason) reason).toErrorString()));
        }
        lines.add(line.toString());
    }

    @Override
    public void onExecutorAdded(SparkListenerExecutorAdded event) {
        lines.add("A\t" + event.executorId() + "\t" + event.executorInfo().totalCores());
    }

    @Override
    public void onExecutorRemoved(SparkListenerExecutorRemoved event) {
        lines.add("D\t" + event.executorId() + "\t" + escape(event.reason()));
    }

    /** The last that Spark reports, except the ends of what it breaks off: its bus passes on no marker from here on. */
    @Override
    public void onApplicationEnd(SparkListenerApplicationEnd event) {
        lines.add("Z");
        urgent.release();
    }

    @Override
    public void onOtherEvent(SparkListenerEvent event) {
        if (event instanceof Marker && ((Marker) event).owner == this) {
            lines.add("M\t" + ((Marker) event).token);
            urgent.release();
        }
    }

    private String head(String kind, int stage, int attempt, TaskInfo info) {
        // A stage of 3.4 and older says -1; there the index is the partition unless the stage was resubmitted.
        int partition = info.partitionId() < 0 ? info.index() : info.partitionId();
        return kind + "\t" + stage + "\t" + attempt + "\t" + partition + "\t" + info.attemptNumber()
            + "\t" + info.taskId()
            + "\t" + info.executorId() + "\t" + info.launchTime() + "\t" + (info.speculative() ? "1" : "0");
    }

    private static boolean readsPersisted(StageInfo info) {
        for (RDDInfo rdd : JavaConverters.asJavaIterable(info.rddInfos())) {
            if (rdd.storageLevel().isValid()) {
                return true;
            }
        }
        return false;
    }

    /** How many rows a task has read from where it begins, apart from shuffles. */
    private long rowsRead(SparkListenerTaskEnd event) {
        HashSet<Long> metrics = (HashSet<Long>) metricsOfStages.get(Integer.valueOf(event.stageId()));
        if (metrics == null) {
            return event.taskMetrics() == null ? 0L : event.taskMetrics().inputMetrics().recordsRead();
        }
        long rows = 0L;
        for (AccumulableInfo one : JavaConverters.asJavaIterable(event.taskInfo().accumulables())) {
            if (metrics.contains(Long.valueOf(one.id())) && one.update().isDefined()) {
                rows += ((Number) one.update().get()).longValue();
            }
        }
        return rows;
    }

    private static void appendMetrics(StringBuilder line, TaskMetrics metrics, long rowsRead) {
        if (metrics == null) {
            return;
        }
        long in = rowsRead + metrics.shuffleReadMetrics().recordsRead();
        long bytesIn = metrics.inputMetrics().bytesRead() + metrics.shuffleReadMetrics().totalBytesRead();
        long out = metrics.outputMetrics().recordsWritten() + metrics.shuffleWriteMetrics().recordsWritten();
        long bytesOut = metrics.outputMetrics().bytesWritten() + metrics.shuffleWriteMetrics().bytesWritten();
        line.append(in).append(',').append(out).append(',').append(bytesIn).append(',').append(bytesOut).append(',');
        line.append(metrics.memoryBytesSpilled()).append(',').append(metrics.diskBytesSpilled()).append(',');
        line.append(metrics.executorRunTime()).append(',').append(metrics.jvmGCTime()).append(',');
        line.append(metrics.resultSize()).append(',').append(metrics.shuffleReadMetrics().fetchWaitTime()).append(',');
        line.append(metrics.shuffleWriteMetrics().writeTime() / 1000000L).append(',');
        line.append(metrics.executorDeserializeTime() + metrics.resultSerializationTime()).append(',');
        line.append(metrics.peakExecutionMemory());
    }

    /** The first of a job's tags that begins with a prefix; null if none does. */
    public static String tagOf(Properties properties, String prefix) {
        String all = properties == null ? null : properties.getProperty(TAGS);
        if (all == null) {
            return null;
        }
        for (String tag : all.split(",")) {
            if (tag.startsWith(prefix)) {
                return tag;
            }
        }
        return null;
    }

    private static int shuffleOf(StageInfo info) {
        return info.shuffleDepId().isEmpty() ? -1 : ((Integer) info.shuffleDepId().get()).intValue();
    }

    private static String escape(String text) {
        if (text == null) {
            return "";
        }
        String some = text.length() > LONGEST_ERROR ? text.substring(0, LONGEST_ERROR) : text;
        return some.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r");
    }

    /** Travels along the listener bus; the event log leaves it out. */
    public static class Marker implements SparkListenerEvent {
        public final TaskMonitor owner;
        public final String token;

        public Marker(TaskMonitor owner, String token) {
            this.owner = owner;
            this.token = token;
        }

        @Override
        public boolean logEvent() {
            return false;
        }
    }
}
