package flinkmagic.deployment;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.lang.ref.WeakReference;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.zip.DeflaterOutputStream;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.scheduler.SparkListenerJobEnd;
import org.apache.spark.scheduler.SparkListenerJobStart;
import org.apache.spark.scheduler.SparkListenerStageCompleted;
import org.apache.spark.scheduler.SparkListenerStageSubmitted;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.scheduler.SparkListenerTaskStart;
import org.apache.spark.scheduler.StageInfo;
import org.apache.spark.sql.execution.ui.SparkListenerDriverAccumUpdates;
import org.apache.spark.sql.execution.ui.SparkListenerSQLAdaptiveExecutionUpdate;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart;
import org.apache.spark.util.JsonProtocol;
import scala.collection.JavaConverters;

/**
 * Keeps what Spark reports about the jobs of single calls, each under a job tag of its own, until it is taken: the tasks
 * as lines of TaskMonitor, all else as Spark's own events. Texts are made of these only when they are taken, so that a
 * short call costs next to nothing.
 */
public class CallEvents extends SparkListener {
    /** Of more calls only the newest are kept: those of a user's threads run simultaneously. */
    private static final int MOST_CALLS = 16;
    /** What a call with more tasks did is not kept. */
    private static final int MOST_TASKS = 20000;

    private String prefix = "";
    private WeakReference<SparkContext> context = new WeakReference<SparkContext>(null);
    // All protected by this object's lock.
    private final LinkedHashMap<String, Kept> calls = new LinkedHashMap<String, Kept>();
    private final HashMap<Integer, Kept> ofJob = new HashMap<Integer, Kept>();
    private final HashMap<Integer, Kept> ofStage = new HashMap<Integer, Kept>();
    private final HashMap<Long, Kept> ofExecution = new HashMap<Long, Kept>();

    /** Listens to a context, unless it does already, for the jobs with a tag that begins with a prefix. */
    public synchronized void listenTo(SparkContext other, String tags) {
        prefix = tags;
        if (context.get() != other) {
            context = new WeakReference<SparkContext>(other);
            other.addSparkListener(this);
        }
    }

    /**
     * What was reported of a call's jobs, which is forgotten here: TaskMonitor's lines, a zero, then the other events
     * as Spark's event log has them; deflated. Empty if there is nothing, or too much.
     */
    public byte[] take(String tag, long waitMs) throws InterruptedException, IOException {
        SparkContext listened = (SparkContext) context.get();
        if (listened != null) {
            Marker marker = new Marker();
            listened.listenerBus().post(marker);
            marker.passed.await(waitMs, TimeUnit.MILLISECONDS);
        }
        Kept kept;
        synchronized (this) {
            kept = (Kept) calls.get(tag);
            if (kept != null) {
                forget(kept);
            }
        }
        if (kept == null || kept.tasks > MOST_TASKS) {
            return new byte[0];
        }
        ByteArrayOutputStream told = new ByteArrayOutputStream();
        DeflaterOutputStream out = new DeflaterOutputStream(told);
        out.write(kept.lines.drain(0, 0).getBytes(StandardCharsets.UTF_8));
        out.write(0);
        for (Object event : kept.events) {
            out.write(JsonProtocol.sparkEventToJsonString((SparkListenerEvent) event).getBytes(StandardCharsets.UTF_8));
            out.write('\n');
        }
        out.close();
        return told.toByteArray();
    }

    @Override
    public synchronized void onJobStart(SparkListenerJobStart event) {
        String tag = TaskMonitor.tagOf(event.properties(), prefix);
        if (tag == null) {
            return;
        }
        Kept kept = of(tag);
        kept.lines.onJobStart(event);
        kept.events.add(event);
        ofJob.put(Integer.valueOf(event.jobId()), kept);
        for (StageInfo info : JavaConverters.asJavaIterable(event.stageInfos())) {
            ofStage.put(Integer.valueOf(info.stageId()), kept);
        }
    }

    @Override
    public synchronized void onJobEnd(SparkListenerJobEnd event) {
        Kept kept = (Kept) ofJob.get(Integer.valueOf(event.jobId()));
        if (kept != null) {
            kept.lines.onJobEnd(event);
            kept.events.add(event);
        }
    }

    @Override
    public synchronized void onStageSubmitted(SparkListenerStageSubmitted event) {
        note(event.stageInfo().stageId(), event);
    }

    @Override
    public synchronized void onStageCompleted(SparkListenerStageCompleted event) {
        note(event.stageInfo().stageId(), event);
    }

    private void note(int stage, SparkListenerEvent event) {
        Kept kept = (Kept) ofStage.get(Integer.valueOf(stage));
        if (kept != null) {
            kept.events.add(event);
        }
    }

    @Override
    public synchronized void onTaskStart(SparkListenerTaskStart event) {
        Kept kept = (Kept) ofStage.get(Integer.valueOf(event.stageId()));
        if (kept != null && ++kept.tasks <= MOST_TASKS) {
            kept.lines.onTaskStart(event);
        }
    }

    @Override
    public synchronized void onTaskEnd(SparkListenerTaskEnd event) {
        Kept kept = (Kept) ofStage.get(Integer.valueOf(event.stageId()));
        if (kept != null && kept.tasks <= MOST_TASKS) {
            kept.lines.onTaskEnd(event);
        }
    }

    @Override
    public void onOtherEvent(SparkListenerEvent event) {
        if (event instanceof Marker) {
            ((Marker) event).passed.countDown();
        } else if (event instanceof SparkListenerSQLExecutionStart) {
            begin((SparkListenerSQLExecutionStart) event);
        } else if (event instanceof SparkListenerSQLExecutionEnd) {
            note(((SparkListenerSQLExecutionEnd) event).executionId(), event);
        } else if (event instanceof SparkListenerSQLAdaptiveExecutionUpdate) {
            note(((SparkListenerSQLAdaptiveExecutionUpdate) event).executionId(), event);
        } else if (event instanceof SparkListenerDriverAccumUpdates) {
            note(((SparkListenerDriverAccumUpdates) event).executionId(), event);
        }
    }

    private synchronized void begin(SparkListenerSQLExecutionStart event) {
        for (Object tag : JavaConverters.asJavaIterable(event.jobTags())) {
            if (((String) tag).startsWith(prefix)) {
                Kept kept = of((String) tag);
                kept.events.add(event);
                ofExecution.put(Long.valueOf(event.executionId()), kept);
            }
        }
    }

    private synchronized void note(long execution, SparkListenerEvent event) {
        Kept kept = (Kept) ofExecution.get(Long.valueOf(execution));
        if (kept != null) {
            kept.events.add(event);
        }
    }

    private Kept of(String tag) {
        Kept kept = (Kept) calls.get(tag);
        if (kept == null) {
            kept = new Kept(tag);
            calls.put(tag, kept);
            if (calls.size() > MOST_CALLS) {
                forget((Kept) calls.values().iterator().next());
            }
        }
        return kept;
    }

    private void forget(Kept kept) {
        calls.remove(kept.tag);
        remove(ofJob.values().iterator(), kept);
        remove(ofStage.values().iterator(), kept);
        remove(ofExecution.values().iterator(), kept);
    }

    private static void remove(Iterator found, Kept kept) {
        while (found.hasNext()) {
            if (found.next() == kept) {
                found.remove();
            }
        }
    }

    /** What was reported of one call. */
    private static class Kept {
        final String tag;
        final TaskMonitor lines;
        final List<Object> events = new ArrayList<Object>();
        int tasks = 0;

        Kept(String tag) {
            this.tag = tag;
            this.lines = new TaskMonitor(tag);
        }
    }

    /** Travels along the listener bus; the event log leaves it out. */
    public static class Marker implements SparkListenerEvent {
        final CountDownLatch passed = new CountDownLatch(1);

        @Override
        public boolean logEvent() {
            return false;
        }
    }
}
