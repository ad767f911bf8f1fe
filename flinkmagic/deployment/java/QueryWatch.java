package flinkmagic.deployment;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.WeakHashMap;

import com.fasterxml.jackson.databind.ObjectMapper;
import flinkmagic.jvm.Reflect;
import org.apache.hadoop.fs.Path;
import org.apache.spark.JobExecutionStatus;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.apache.spark.sql.execution.adaptive.QueryStageExec;
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeLike;
import org.apache.spark.sql.streaming.StreamingQuery;
import org.apache.spark.sql.streaming.StreamingQueryProgress;
import org.apache.spark.status.api.v1.JobData;
import org.apache.spark.util.AccumulatorV2;
import scala.Option;
import scala.collection.JavaConverters;

/**
 * Tells in one call what a streaming query has done since the call before, and what its tasks are doing. Spark keeps the
 * last hundred batches itself, so none is missed between two calls, and none of its threads waits for anyone.
 */
public class QueryWatch {
    /** No JSON contains it: there a control character is escaped. */
    private static final String SEPARATOR = "\u0001";
    private static final ObjectMapper JSON = new ObjectMapper();

    /** By query the execution of a batch that ran when it was looked at last: it is asked once the batch has ended. */
    private final WeakHashMap<StreamingQuery, Object> running = new WeakHashMap<StreamingQuery, Object>();

    /**
     * Returns the tasks of the running batch ("total active completed failed", all zero between batches), then the
     * measures of a batch that has ended (see `measures`; empty if there are none), then the batches as Spark's own
     * JSON, oldest first.
     *
     * @param from the number of the first batch to return; the last one may have been reported again since
     */
    public String seen(StreamingQuery query, SparkContext context, long from) throws Exception {
        StringBuilder told = new StringBuilder(tasks(query, context));
        StreamingQueryProgress[] recent = query.recentProgress();
        told.append(SEPARATOR);
        if (recent.length > 0) {
            try {
                told.append(measures(query, recent[recent.length - 1].batchId()));
            } catch (NoSuchMethodException otherVersion) {
                // What Spark reports by itself is told without its plans.
            }
        }
        for (StreamingQueryProgress each : recent) {
            if (each.batchId() >= from) {
                told.append(SEPARATOR).append(each.json());
            }
        }
        return told.toString();
    }

    /** When Spark begins batches, and the folder of the checkpoint; empty where this version does not say. */
    public String about(StreamingQuery query) throws Exception {
        Object execution = Reflect.callIfAny(query, "streamingQuery");
        Object trigger = execution == null ? null : Reflect.callIfAny(execution, "trigger");
        Object folder = execution == null ? null : Reflect.callIfAny(execution, "resolvedCheckpointRoot");
        return (trigger == null ? "" : trigger) + SEPARATOR + (folder == null ? "" : folder);
    }

    /** How many bytes the files have that are in a folder, however deep. */
    public long bytes(String folder, SparkContext context) throws IOException {
        Path path = new Path(folder);
        return path.getFileSystem(context.hadoopConfiguration()).getContentSummary(path).getLength();
    }

    /**
     * What the stages of a batch have read and written, as JSON: the last stage first, then that below each shuffle, as
     * they stand in the plan from left to right; and the watermarks of operators with state, in ms.
     *
     * A batch is asked when it has ended: the metrics of one that runs grow. Spark makes the plan of a batch on the
     * query's own thread, before the batch runs.
     */
    private synchronized String measures(StreamingQuery query, long ended) throws Exception {
        Object last = Reflect.call(Reflect.call(query, "streamingQuery"), "lastExecution");
        Object former = running.get(query);
        Object done = last != null && batch(last) <= ended ? last : former;
        if (last != null) {
            running.put(query, last);
        }
        if (done == null || batch(done) > ended) {
            return "";
        }
        List<Object> stages = new ArrayList<Object>();
        List<Object> watermarks = new ArrayList<Object>();
        stages.add(new LinkedHashMap<String, Object>());
        walk((SparkPlan) Reflect.call(done, "executedPlan"), (Map) stages.get(0), stages, watermarks);
        Map<String, Object> answer = new LinkedHashMap<String, Object>();
        answer.put("batch", Long.valueOf(batch(done)));
        answer.put("stages", stages);
        answer.put("watermarks", watermarks);
        return JSON.writeValueAsString(answer);
    }

    private static long batch(Object execution) throws Exception {
        return ((Number) Reflect.call(execution, "currentBatchId")).longValue();
    }

    private static void walk(SparkPlan plan, Map stage, List stages, List watermarks) throws Exception {
        if (plan instanceof AdaptiveSparkPlanExec) {
            walk(((AdaptiveSparkPlanExec) plan).executedPlan(), stage, stages, watermarks);
            return;
        }
        if (plan instanceof QueryStageExec) {
            walk(((QueryStageExec) plan).plan(), stage, stages, watermarks);
            return;
        }
        if (plan instanceof ReusedExchangeExec) {
            return; // it was told of where it was made
        }
        Map within = stage;
        if (plan instanceof ShuffleExchangeLike) {
            within = new LinkedHashMap<String, Object>();
            within.put("rowsOut", value(plan, "shuffleRecordsWritten"));
            within.put("bytesOut", value(plan, "shuffleBytesWritten"));
            stages.add(within);
        }
        if (Reflect.callIfAny(plan, "shortName") != null) { // an operator with state, as Spark reports them
            Object watermark = Reflect.callIfAny(plan, "eventTimeWatermarkForEviction");
            boolean isKnown = watermark instanceof Option && ((Option) watermark).isDefined();
            watermarks.add(isKnown ? ((Option) watermark).get() : null);
        }
        Object rows = value(plan, "numOutputRows");
        if (rows != null && !within.containsKey("rowsOut")) {
            within.put("rowsOut", rows);
        }
        if (plan.children().isEmpty() && rows != null) {
            Object before = within.get("rowsIn");
            long sum = ((Number) rows).longValue() + (before == null ? 0L : ((Number) before).longValue());
            within.put("rowsIn", Long.valueOf(sum));
        }
        for (SparkPlan child : JavaConverters.asJavaIterable(plan.children())) {
            walk(child, within, stages, watermarks);
        }
    }

    private static Object value(SparkPlan plan, String name) {
        Option metric = (Option) plan.metrics().get(name);
        return metric.isDefined() ? ((AccumulatorV2) metric.get()).value() : null;
    }

    private static String tasks(StreamingQuery query, SparkContext context) {
        String group = query.runId().toString();
        int total = 0;
        int active = 0;
        int completed = 0;
        int failed = 0;
        if (query.isActive()) {
            List<JobExecutionStatus> running = Collections.singletonList(JobExecutionStatus.RUNNING);
            for (JobData job : JavaConverters.asJavaIterable(context.statusStore().jobsList(running))) {
                if (job.jobGroup().isDefined() && group.equals(job.jobGroup().get())) {
                    total += job.numTasks();
                    active += job.numActiveTasks();
                    completed += job.numCompletedTasks();
                    failed += job.numFailedTasks();
                }
            }
        }
        return total + " " + active + " " + completed + " " + failed;
    }
}
