package flinkmagic.deployment;

import org.apache.spark.unsafe.Platform;
import scala.runtime.AbstractFunction0;

/**
 * What runs inside SQLExecution.withNewExecutionId for a query of which a stage has failed before its last one ran: the
 * failure, so that listeners and the SQL tab are told of it as of a plain one.
 */
public class FailedQuery extends AbstractFunction0 {
    private final Throwable error;

    public FailedQuery(Throwable error) {
        this.error = error;
    }

    @Override
    public Object apply() {
        Platform.throwException(error);
        return null;
    }
}
