package flinkmagic.deployment;

import java.util.Collections;
import java.util.List;

import org.apache.spark.JobExecutionStatus;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.streaming.StreamingQuery;
import org.apache.spark.sql.streaming.StreamingQueryProgress;
import org.apache.spark.status.api.v1.JobData;
import scala.collection.Iterator;

/**
 * Tells in one call what a streaming query has done since the call before, and what its tasks are doing. Spark keeps the
 * last hundred batches itself, so none is missed between two calls, and none of its threads waits for anyone.
 */
public class QueryWatch {
    /** No JSON contains it: there a control character is escaped. */
    private static final String SEPARATOR = "\u0001";

    /**
     * Returns the tasks of the running batch ("total active completed failed", all zero between batches), then the
     * batches as Spark's own JSON, oldest first.
     *
     * @param from the number of the first batch to return; the last one may have been reported again since
     */
    public String seen(StreamingQuery query, SparkContext context, long from) {
        StringBuilder told = new StringBuilder(tasks(query, context));
        StreamingQueryProgress[] recent = query.recentProgress();
        for (StreamingQueryProgress each : recent) {
            if (each.batchId() >= from) {
                told.append(SEPARATOR).append(each.json());
            }
        }
        return told.toString();
    }

    private static String tasks(StreamingQuery query, SparkContext context) {
        String group = query.runId().toString();
        int total = 0;
        int active = 0;
        int completed = 0;
        int failed = 0;
        if (query.isActive()) {
            List<JobExecutionStatus> running = Collections.singletonList(JobExecutionStatus.RUNNING);
            Iterator jobs = context.statusStore().jobsList(running).iterator();
            while (jobs.hasNext()) {
                JobData job = (JobData) jobs.next();
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
