package flinkmagic.reuse;

import java.util.regex.Pattern;

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
 * (`Executor.setMDCForTask`). What the scheduler logs of a lost task says by which tag its job was cancelled.
 *
 * Seen on Spark 3.5 and 4.3 (Log4j 2.20 and 2.24).
 */
public class BackgroundJobLogs extends AbstractFilter {
    private final String mark;
    /** The tag alone would do, but for users whose folders have its name. */
    private final Pattern cancelled;
    private volatile long begun = 0;
    /** Of the jobs up to this number nothing is logged any more: a killed task may tell of its end seconds later. */
    private volatile long quiet = 0;

    /** @param tag that of the jobs */
    public BackgroundJobLogs(String tag) {
        this.cancelled = Pattern.compile("cancelled job tags? " + Pattern.quote(tag) + "\\b");
        this.mark = "mdc." + tag + "." + System.identityHashCode(this);
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
        begun = begun + 1;
        String number = Long.toString(begun);
        ThreadContext.put(mark, number);
        context.setLocalProperty(mark, number);
    }

    /** Keeps out what is still logged of the jobs that have begun: they are being cancelled. */
    public void keepOut() {
        quiet = begun;
    }

    public void end(SparkContext context) {
        ThreadContext.remove(mark);
        context.setLocalProperty(mark, null);
    }

    @Override
    public Result filter(LogEvent event) {
        Object number = event.getContextData().getValue(mark);
        boolean isTheirs = number != null && Long.parseLong(number.toString()) <= quiet;
        boolean isOut = isTheirs || cancelled.matcher(event.getMessage().getFormattedMessage()).find();
        return isOut ? Result.DENY : Result.NEUTRAL;
    }
}
