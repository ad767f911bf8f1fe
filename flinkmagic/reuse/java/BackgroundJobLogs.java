package flinkmagic.reuse;

import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.ThreadContext;
import org.apache.logging.log4j.core.LogEvent;
import org.apache.logging.log4j.core.LoggerContext;
import org.apache.logging.log4j.core.config.LoggerConfig;
import org.apache.logging.log4j.core.filter.AbstractFilter;
import org.apache.spark.SparkContext;

/**
 * Keeps out of the log what Spark tells of a background job that is being cancelled: nothing is wrong, and its errors
 * with their stack traces would stand in the cell that has cancelled it.
 *
 * Spark copies those properties of a thread whose names begin with "mdc." to the context of what tasks log
 * (`Executor.setMDCForTask`). What the scheduler logs of a lost task has the tag of its job in its text.
 *
 * Seen on Spark 3.5 and 4.3 (Log4j 2.20 and 2.24).
 */
public class BackgroundJobLogs extends AbstractFilter {
    private final String tag;
    private final String mark;
    private volatile boolean isQuiet = false;

    /** @param tag that of the jobs */
    public BackgroundJobLogs(String tag) {
        this.tag = tag;
        this.mark = "mdc." + tag;
    }

    /** Sees what is logged from now on, until it is closed. */
    public void open() {
        start();
        LoggerConfig root = root();
        if (root != null) {
            root.addFilter(this);
        }
    }

    public void close() {
        LoggerConfig root = root();
        if (root != null) {
            root.removeFilter(this);
        }
    }

    private static LoggerConfig root() {
        Object context = LogManager.getContext(false);
        // Another library may stand behind Log4j's interface.
        return context instanceof LoggerContext ? ((LoggerContext) context).getConfiguration().getRootLogger() : null;
    }

    /** What the calling thread and its jobs log is of a background job from now on. */
    public void begin(SparkContext context) {
        isQuiet = false;
        ThreadContext.put(mark, tag);
        context.setLocalProperty(mark, tag);
    }

    /** Keeps out what is still logged of the jobs that have begun: they are being cancelled. */
    public void keepOut() {
        isQuiet = true;
    }

    public void end(SparkContext context) {
        ThreadContext.remove(mark);
        context.setLocalProperty(mark, null);
    }

    @Override
    public Result filter(LogEvent event) {
        boolean isTheirs = isQuiet
            && (event.getContextData().containsKey(mark) || event.getMessage().getFormattedMessage().contains(tag));
        return isTheirs ? Result.DENY : Result.NEUTRAL;
    }
}
